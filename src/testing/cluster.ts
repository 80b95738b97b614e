import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { migrate } from '../db/migration/migrate.ts'
import { migrationNames, migrationsDirectory } from '../db/migration/steps.ts'
import { type Connection, searchPath } from '../db/servers/connection.ts'
import { streamOf } from '../db/servers/dial.ts'
import { defaultSchema } from '../db/servers/locate.ts'
import { findBinaries } from '../embedded/binaries.ts'
import { connectionTo, initDatabase, startPostgres } from '../embedded/postgres-process.ts'
import { temporaryDirectory } from '../embedded/socket.ts'
import { databaseUser } from '../embedded/user.ts'

/** A throwaway PostgreSQL, removed when the process ends. */
export type TestCluster = {
  /** Connects to the database `postgres` as superuser. */
  connection: pg.ClientConfig
  stop(): Promise<void>
}

/** No durability, since nothing is kept; no autovacuum, which would change plans in the middle of a test. */
const throwaway = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_connections: '300',
  shared_buffers: '128MB',
}

/**
 * Starts a cluster in a new directory below `within`, by default the temporary directory. `CELLKEEP_POSTGRES_BIN`
 * chooses the version; `settings` override the defaults. It is a copy of the stopped database `from` if there is one:
 * `initdb` takes eight times the CPU. It ends with this process at the latest.
 */
export async function startCluster({
  within,
  settings = {},
  from,
}: {
  within?: string | undefined
  settings?: Record<string, string>
  from?: string | undefined
} = {}): Promise<TestCluster> {
  const user = await databaseUser('')
  const dir = await temporaryDirectory('ck-', user, within)
  const watchdog = spawn('/bin/sh', ['-c', watch, 'sh', dir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    cwd: '/',
  })
  const ended = once(watchdog, 'exit')
  const stop = async (): Promise<void> => {
    watchdog.ref()
    watchdog.stdin.end()
    await ended
  }
  try {
    const postgresBin = process.env.CELLKEEP_POSTGRES_BIN || undefined
    const binaries = await findBinaries({
      postgresBin,
      libDir: join(dir, 'lib'),
      user,
      onNotice: console.warn,
    })
    const db = join(dir, 'db')
    // A root process must leave the files to the user of the database.
    if (from) await promisify(execFile)('cp', ['-a', from, db])
    else await initDatabase(binaries, db, user, ['--no-sync'])
    const { client } = await startPostgres({
      binaries,
      db,
      socketDir: dir,
      logFile: join(dir, 'log'),
      user,
      settings: { ...throwaway, ...settings },
    })
    await client.end()
  } catch (error) {
    await stop()
    throw error
  }
  watchdog.unref()
  // The pipe to the child is a socket, which would keep this process alive. In Bun it is not a socket, and does not.
  ;(watchdog.stdin as unknown as Partial<Socket>).unref?.()
  return { connection: connectionTo(dir, 'postgres'), stop }
}

/**
 * The cluster of this test run: that of `CELLKEEP_TEST_DATABASE_URL` if set (vitest's global setup does so),
 * otherwise one that this process starts on the first call.
 */
export async function sharedCluster(): Promise<{ connection: pg.ClientConfig; template: string }> {
  shared ??= open()
  return shared
}

let shared: Promise<{ connection: pg.ClientConfig; template: string }> | undefined

async function open() {
  const url = process.env.CELLKEEP_TEST_DATABASE_URL
  const connection = url ? fromUrl(url) : (await startCluster()).connection
  return { connection, template: await migratedTemplate(connection) }
}

/** Copies a template into a database with a random name; copies may run concurrently. */
export async function cloneDatabase(
  connection: pg.ClientConfig,
  template: string,
): Promise<{ connection: pg.ClientConfig; drop(): Promise<void> }> {
  const database = `cellkeep_${randomBytes(8).toString('hex')}`
  // The default strategy, through the WAL, takes four times the CPU for the 300 small files of a template, and so does
  // their removal.
  await administer(connection, `create database ${database} template ${template} strategy file_copy`)
  return {
    connection: { ...connection, database },
    drop: () => administer(connection, `drop database if exists ${database} with (force)`),
  }
}

/**
 * The database with every migration applied, made once per cluster and set of migrations. It then refuses
 * connections: PostgreSQL cannot copy a template that is in use.
 */
export async function migratedTemplate(connection: pg.ClientConfig): Promise<string> {
  const template = `cellkeep_template_${await migrationsDigest()}`
  await asAdmin(connection, async (admin) => {
    await admin.query('select pg_advisory_lock(hashtext($1))', [template])
    const { rows } = await admin.query('select datallowconn from pg_database where datname = $1', [template])
    if (rows[0]?.datallowconn === false) return
    await admin.query(`drop database if exists ${template} with (force)`)
    await admin.query(`create database ${template}`)
    await migrate({ ...connection, database: template, schema: defaultSchema })
    await admin.query(`alter database ${template} allow_connections false`)
  })
  return template
}

/** The connection as a URL, in the form of `CELLKEEP_TEST_DATABASE_URL`; every client finds the tables by it. */
export function toUrl({ host, port, user, database, schema }: Connection): string {
  const url = new URL(`postgres://${user}@localhost/${database}`)
  const options = schema && `-c search_path=${searchPath(schema)}`
  url.search = new URLSearchParams({
    host: host ?? '',
    port: String(port),
    ...(options && { options }),
  }).toString()
  return url.href
}

/** Separate settings rather than a URL, so that a copy can override `database`. */
function fromUrl(text: string): pg.ClientConfig {
  const url = new URL(text)
  const password = decodeURIComponent(url.password)
  return {
    host: url.searchParams.get('host') ?? url.hostname,
    port: Number(url.searchParams.get('port') ?? (url.port || 5432)),
    user: decodeURIComponent(url.username),
    ...(password && { password }),
    database: decodeURIComponent(url.pathname.slice(1)) || 'postgres',
  }
}

/** Kept connections, each with its last statement: opening one takes as much CPU as copying a database. */
const admins = new Map<string, { opening: Promise<pg.Client>; last: Promise<unknown> }>()

/** Runs a statement on the kept connection, which does not keep this process alive between statements. */
async function administer(connection: pg.ClientConfig, text: string): Promise<void> {
  const key = JSON.stringify(connection)
  const open = async (): Promise<pg.Client> => {
    const client = new pg.Client(connection)
    const forget = () => void (admins.get(key)?.opening === opening && admins.delete(key))
    client.on('error', forget).on('end', forget)
    try {
      await client.connect()
    } catch (error) {
      forget()
      throw error
    }
    return client
  }
  const opening = admins.get(key)?.opening ?? open()
  const turn = (admins.get(key)?.last ?? Promise.resolve()).then(async () => {
    const client = await opening
    const socket = streamOf(client)
    socket?.ref()
    await client.query(text).finally(() => socket?.unref())
  })
  admins.set(key, { opening, last: turn.catch(() => {}) })
  await turn
}

async function asAdmin(
  connection: pg.ClientConfig,
  work: (admin: pg.Client) => Promise<unknown>,
): Promise<void> {
  const admin = new pg.Client(connection)
  await admin.connect()
  try {
    await work(admin)
  } finally {
    await admin.end()
  }
}

async function migrationsDigest(): Promise<string> {
  const hash = createHash('sha256').update(defaultSchema)
  for (const name of migrationNames())
    hash.update(name).update(await readFile(join(migrationsDirectory, `${name}.sql`)))
  return hash.digest('hex').slice(0, 12)
}

/**
 * Waits for the end of its input, which means that this process ended for whatever reason; then stops the server
 * and removes the directory. `-QUIT` skips the checkpoint.
 */
const watch = `
cat >/dev/null
read -r pid <"$1/db/postmaster.pid" && kill -QUIT "$pid" && for i in $(seq 200); do
  kill -0 "$pid" || break
  sleep 0.05
done
rm -rf -- "$1"
`

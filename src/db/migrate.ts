import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { StartError } from '../errors.ts'
import { databaseRefusal } from './failure.ts'

/** The package's migrations: two levels up from `src/db` and from `dist/db` alike. */
export const migrationsDirectory = fileURLToPath(new URL('../../migrations/', import.meta.url))

/** Exit code if the database is unreachable or its schema is not the one this version needs. */
const databaseExit = 3
const connectWaitMs = 5_000

export type MigrateOptions = {
  /** `auto` applies pending migrations; `check` refuses to start if there are any. */
  mode?: 'auto' | 'check'
  directory?: string
  /** The last migration to consider; later ones are ignored. */
  upTo?: string
  log?: { info(fields: object, text: string): void }
  /** Called with the name of each migration before it runs. */
  observe?: (name: string) => void
}

/**
 * Brings the database to the schema of this version. All pending migrations and their records are one
 * transaction; a lock lets one process per database migrate at a time. Resolves to the migrations that this
 * call applied. Rejects with a StartError: `db_unreachable`, `db_unsuitable`, `migration_pending`,
 * `migration_failed`, `migration_name_divergence`, `binary_older_than_db`, `migrations_missing`.
 */
export async function migrate(
  connection: pg.ClientConfig,
  options: MigrateOptions = {},
): Promise<{ applied: string[] }> {
  const { mode = 'auto', directory = migrationsDirectory, upTo, log, observe } = options
  const all = migrationNames(directory)
  const names = upTo === undefined ? all : all.slice(0, all.indexOf(upTo) + 1)
  const client = await connect(connection)
  const run: Run = { client, names, directory, observe, at: 'reading the recorded migrations' }
  try {
    await requireSuitable(client)
    const pending = pendingSteps(names, await recordedNames(client))
    if (pending.length === 0) return { applied: [] }
    if (mode === 'check') throw refuse('migration_pending', pendingText(pending))
    const applied = await applyPending(run)
    for (const migration of applied) log?.info({ migration }, 'migration applied')
    return { applied }
  } catch (error) {
    if (error instanceof StartError) throw error
    const lost = databaseRefusal(error)?.data.reason === 'service_unavailable'
    const text = `Migration failed (${run.at}): ${textOf(error)}. Either all pending migrations are applied or none; `
    throw refuse(lost ? 'db_unreachable' : 'migration_failed', `${text}fix the cause and start again.`, error)
  } finally {
    // Also rolls back a transaction that a failure left open.
    await client.end().catch(() => undefined)
  }
}

type Run = {
  client: pg.Client
  names: string[]
  directory: string
  observe: MigrateOptions['observe']
  /** The current step, for the error message. */
  at: string
}

/** The migrations of a directory in order; a name is the file name without `.sql`. */
export function migrationNames(directory: string = migrationsDirectory): string[] {
  let files: string[]
  try {
    files = readdirSync(directory).filter((file) => file.endsWith('.sql') && file !== 'schema.sql')
  } catch (error) {
    throw refuse('migrations_missing', `Cannot read ${directory}; install the package again.`, error)
  }
  const wrong = files.find((file) => !/^[0-9]{4}_[a-z0-9_]+\.sql$/.test(file))
  if (wrong !== undefined)
    throw refuse(
      'migrations_missing',
      `${join(directory, wrong)} is not named like 0001_name.sql; rename it.`,
    )
  if (files.length === 0)
    throw refuse('migrations_missing', `${directory} holds no migrations; install the package again.`)
  return files.map((file) => file.slice(0, -'.sql'.length)).sort()
}

async function connect(connection: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client({
    application_name: 'cellkeep migrate',
    connectionTimeoutMillis: connectWaitMs,
    ...connection,
  })
  // Without an 'error' listener Node exits when the connection is lost; the running statement reports it.
  client.on('error', () => undefined)
  try {
    await client.connect()
    // Limits set for the role or the database are meant for requests, not for a migration of a large table.
    await client.query(
      'set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0',
    )
    return client
  } catch (error) {
    await client.end().catch(() => undefined)
    throw refuse(
      'db_unreachable',
      `The database cannot be reached: ${textOf(error)}. Check that it runs.`,
      error,
    )
  }
}

async function requireSuitable(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: number; name: string; encoding: string }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
            current_setting('server_encoding') as encoding`,
  )
  const server = rows[0]
  if (server === undefined || server.version < 150_000)
    throw refuse('db_unsuitable', `PostgreSQL ${server?.name} is too old; use version 15 to 18.`)
  if (server.encoding !== 'UTF8')
    throw refuse('db_unsuitable', `The database is encoded in ${server.encoding}; create one with UTF8.`)
}

async function recordedNames(client: pg.Client): Promise<string[]> {
  const found = await client.query<{ found: boolean }>(
    `select to_regclass('schema_migration') is not null as found`,
  )
  if (!found.rows[0]?.found) return []
  const { rows } = await client.query<{ name: string }>('select name from schema_migration order by name')
  return rows.map((row) => row.name)
}

/** The migrations yet to run. Throws if the recorded names don't match those of this version. */
function pendingSteps(names: string[], recorded: string[]): string[] {
  const unknown = recorded.filter((name) => !names.includes(name))
  if (unknown.length > 0 && names.every((name) => recorded.includes(name)))
    throw refuse(
      'binary_older_than_db',
      `This database was migrated by a newer version (${unknown.join(', ')}). Install that version or a later one.`,
    )
  const at = recorded.findIndex((name, index) => name !== names[index])
  if (at >= 0)
    throw refuse(
      'migration_name_divergence',
      `The database records ${recorded[at]} where this version has ${names[at] ?? 'no migration'}. ` +
        'It belongs to another program or branch: use its own version, or another database.',
    )
  return names.slice(recorded.length)
}

async function applyPending(run: Run): Promise<string[]> {
  const { client } = run
  run.at = 'waiting for the migration lock'
  await client.query('begin isolation level read committed')
  // Held until the transaction ends: a process that waited here then finds the migrations recorded.
  await client.query(`select pg_advisory_xact_lock(hashtextextended('cellkeep migrate', 0))`)
  await client.query(
    `create table if not exists schema_migration (
       name text collate "C" primary key, applied_at timestamptz(3) not null default now())`,
  )
  const pending = pendingSteps(run.names, await recordedNames(client))
  for (const name of pending) {
    run.at = name
    run.observe?.(name)
    await client.query(readFileSync(join(run.directory, `${name}.sql`), 'utf8'))
    await client.query('insert into schema_migration (name) values ($1)', [name])
  }
  run.at = 'commit'
  await client.query('commit')
  return pending
}

const pendingText = (pending: string[]): string =>
  `The database lacks ${pending.join(', ')}. Run \`cellkeep migrate\`, or start with CELLKEEP_MIGRATE=auto.`

const refuse = (reason: string, message: string, cause?: unknown): StartError =>
  new StartError(reason, message, databaseExit, { cause })

const textOf = (error: unknown): string => {
  const { message, code } = error as { message?: string; code?: string }
  // A refused connection to several addresses is an AggregateError without a message.
  return message || code || String(error)
}

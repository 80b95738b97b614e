import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Binaries } from './binaries.ts'
import { type DatabaseUser, runAs } from './user.ts'

export const superuser = 'cellkeep'
const port = 5432

/** The file name of the socket in its directory. */
export const socketName = `.s.PGSQL.${port}`

/** An embedded server: its files and the user that it runs as. */
type Server = {
  binaries: Binaries
  /** The database directory, as a real path. */
  db: string
  socketDir: string
  logFile: string
  user: DatabaseUser | undefined
  /** Settings that override `postgresql.conf`. */
  settings?: Record<string, string>
}

/** Connection settings for the server of a socket directory; `PG*` environment variables have no effect. */
export const connectionTo = (socketDir: string, database: string): pg.ClientConfig => ({
  host: socketDir,
  port,
  user: superuser,
  database,
  ssl: false,
})

/** The server could not be started or its files not be made; the message holds the last lines that the program wrote. */
export class PostgresFailure extends Error {
  /** True if `initdb` failed, which writes to no log. */
  readonly isMaking: boolean
  /** True if another server holds the directory, or another process has stopped this one: try again. */
  readonly passing: boolean
  /** True if a server that cannot be reached holds the directory, or processes that a killed one left. */
  readonly isHeld: boolean

  constructor(logged: string, { isStopped = false, isHeld = false, isMaking = false } = {}) {
    super(logged.split('\n').slice(-6).join('\n'))
    this.name = 'PostgresFailure'
    this.isMaking = isMaking
    this.isHeld = isHeld
    // Not only in the last lines: the other server writes to the same log.
    this.passing =
      isStopped ||
      isHeld ||
      /lock file ".*" (already exists|is empty)|shared memory block|already in use/.test(logged)
  }
}

/** Runs initdb: UTF-8, independent of the machine's locales, reachable through the socket only. */
export async function initDatabase(
  binaries: Binaries,
  db: string,
  user: DatabaseUser | undefined,
  extra: string[] = [],
): Promise<void> {
  const locale =
    binaries.major >= 17
      ? ['--no-locale', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
      : ['--no-locale']
  const access = ['--auth-local=trust', '--auth-host=reject', '-U', superuser]
  const options = ['-D', db, '-E', 'UTF8', ...locale, ...access, ...extra]
  await promisify(execFile)(binaries.initdb, options, { env: binaries.env, ...runAs(user) }).catch(
    (error: Error & { stderr?: string }) => {
      throw new PostgresFailure(error.stderr?.trim() || error.message, { isMaking: true })
    },
  )
}

/**
 * Starts the server and resolves to a connection to its database `postgres` as soon as it accepts one. Rejects
 * with `PostgresFailure` if the server exits before that, or runs where this process cannot see it. If `signal` aborts,
 * it stops the server, then rejects. `alone` runs before the start, while no other server of the directory can start.
 */
export async function startPostgres(
  server: Server,
  signal?: AbortSignal,
  alone = async (): Promise<void> => {},
): Promise<Held> {
  const log = await open(server.logFile, 'a', 0o600)
  try {
    if (!(await lock(log.fd)))
      throw new PostgresFailure('another server uses the directory', { isHeld: true })
    await alone()
    return await startOn(log, server, signal)
  } finally {
    await log.close()
  }
}

/**
 * Locks the file until the last copy of this descriptor is closed. PostgreSQL inherits it as its log, so the lock lasts
 * as long as any of its processes. It holds across containers, and on a network file system across machines; the lock
 * files of PostgreSQL do not, because they hold a pid. Without the program `flock` the lock counts as taken.
 */
const lock = (fd: number): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] })
    child.once('error', () => resolve(true))
    // 1: held by another. Other codes: the file system has no such locks.
    child.once('exit', (code) => resolve(code !== 1))
  })

async function startOn(log: FileHandle, server: Server, signal?: AbortSignal): Promise<Held> {
  const { size } = await log.stat()
  // Next time the owner of the database may start it, and must then be able to write this file.
  if (server.user !== undefined) await log.chown(server.user.uid, server.user.gid)
  const child = spawnServer(server, log.fd)
  const ended = new Promise<Error>((resolve) => {
    child.once('exit', (code, killed) => resolve(new Error(`postgres ended with ${killed ?? code}`)))
    child.once('error', resolve)
  })
  let end: Error | undefined
  void ended.then((error) => {
    end = error
  })
  for (let wait = 10; ; wait = Math.min(wait * 1.5, 200)) {
    await Promise.race([ended, delay(wait)])
    if (end !== undefined) {
      // Exit code 0: the last of those who used it meanwhile stopped it before this process had connected.
      const isStopped = child.exitCode === 0
      throw new PostgresFailure((await loggedSince(server.logFile, size)) || end.message, { isStopped })
    }
    if (signal?.aborted) {
      // spawnServer unreferenced the child; keep the process alive until the server has exited.
      child.ref()
      child.kill('SIGINT')
      await ended
      throw signal.reason
    }
    const held = await connect(server.socketDir).catch(() => undefined)
    if (held !== undefined) return held
  }
}

/** An open connection, and a promise that resolves when it ends. */
export type Held = { client: pg.Client; ended: Promise<void> }

/**
 * A connection to the database `postgres`, or undefined if no server listens. Rejects with the server's own
 * error while it starts or stops (SQLSTATE 57P03).
 */
export async function connect(socketDir: string): Promise<Held | undefined> {
  const client = new pg.Client({
    ...connectionTo(socketDir, 'postgres'),
    application_name: 'cellkeep',
    connectionTimeoutMillis: 5000,
  })
  // Without an 'error' listener Node exits; the 'end' event tells us all we need.
  client.on('error', () => {})
  const ended = new Promise<void>((resolve) => client.once('end', resolve))
  try {
    await client.connect()
    return { client, ended }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return undefined
    throw error
  }
}

/** Ends a connection that may be lost already: then pg might wait for an 'end' that has already happened. */
export async function disconnect({ client, ended }: Held): Promise<void> {
  const limit = new AbortController()
  const expired = delay(2000, undefined, { signal: limit.signal }).catch(() => {})
  await Promise.race([client.end().catch(() => {}), ended, expired])
  limit.abort()
}

/** Fast shutdown, then immediate shutdown, then SIGKILL. Resolves when the process is gone. */
export async function stopPostgres(db: string): Promise<void> {
  const pid = await postmasterPid(db)
  if (pid === undefined) return
  for (const [signal, limitMs] of [
    ['SIGINT', 20_000],
    ['SIGQUIT', 6000],
    ['SIGKILL', 5000],
  ] as const) {
    try {
      process.kill(pid, signal)
    } catch {
      return
    }
    const until = performance.now() + limitMs
    for (let wait = 5; performance.now() < until; wait = Math.min(wait * 1.5, 100)) {
      // Not by the lock file, which disappears shortly before the process.
      if (!(await serves(pid, db))) return
      await delay(wait)
    }
  }
  throw new Error(`The database server ${pid} does not stop`)
}

/** The pid of the server of `db` according to its lock file; undefined if the file is missing or stale. */
export async function postmasterPid(db: string): Promise<number | undefined> {
  const pid = Number((await readFile(join(db, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')[0])
  return pid > 0 && (await serves(pid, db)) ? pid : undefined
}

/** Distinguishes the server of `db` from a later process with its pid, or one of another container. */
export async function serves(pid: number, db: string): Promise<boolean> {
  if (process.platform === 'linux') {
    // World-readable, unlike the working directory; empty for a zombie.
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    return line.split('\0').includes(db)
  }
  return isAlive(pid)
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function spawnServer({ binaries, db, socketDir, user, settings }: Server, logFd: number): ChildProcess {
  const all: Record<string, string> = {
    listen_addresses: '',
    port: String(port),
    // A list of names: quoted, so that commas and spaces are part of the path.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    cluster_name: 'cellkeep',
    // The service reports failed statements; here they would write submitted values to a file.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    // Compiling the plans of short statements never pays off.
    jit: 'off',
    ...settings,
  }
  const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(binaries.postgres, ['-D', db, ...options], {
    env: binaries.env,
    stdio: ['ignore', logFd, logFd],
    // In its own process group, so that Ctrl-C in the terminal reaches the service only, which stops the database.
    detached: true,
    ...runAs(user),
  })
  child.unref()
  return child
}

/** What was logged after the first `from` bytes of the file, at most the last 16 KiB. */
async function loggedSince(file: string, from: number): Promise<string> {
  const log = await open(file)
  try {
    const { size } = await log.stat()
    const start = Math.max(from, size - 16_384)
    const { buffer, bytesRead } = await log.read({
      buffer: Buffer.alloc(Math.max(size - start, 1)),
      position: start,
    })
    return buffer.toString('utf8', 0, bytesRead).trim()
  } finally {
    await log.close()
  }
}

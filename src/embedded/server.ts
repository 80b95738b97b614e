import { copyFile, readFile, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { StartError } from '../errors.ts'
import { type Binaries, type BinariesOptions, findBinaries } from './binaries.ts'
import { databaseVersion, dropUnfinished, makeDatabase } from './making.ts'
import type { Place } from './place.ts'
import { connect, type Held, isAlive, serves, socketName, startPostgres } from './postgres-process.ts'

type OpenOptions = Pick<BinariesOptions, 'postgresBin' | 'onNotice'> & {
  /** Whether to make a missing database. False once the service had one: it must not continue on an empty one. */
  mayMake: boolean
}

/**
 * Connects to the server of a data dir; starts it if it does not run, and makes its database if there is none.
 * Rejects with `StartError`, `PostgresFailure`, or the server's error while it starts or stops.
 */
export async function openServer(
  place: Place,
  { mayMake, ...programs }: OpenOptions,
  signal: AbortSignal,
): Promise<{ held: Held; started: boolean }> {
  const running = await connect(place.socketDir)
  if (running !== undefined) return { held: running, started: false }
  await dropUnfinished(place.dataDir)
  const binaries = await findBinaries({ ...programs, libDir: place.libDir, user: place.user })
  await ensureDatabase(place, binaries, mayMake)
  await boundLog(place.logFile)
  const held = await startPostgres({ binaries, ...place }, signal, async () => {
    await dropStaleLock(join(place.db, 'postmaster.pid'), place.db)
    await dropStaleLock(join(place.socketDir, `${socketName}.lock`), place.db)
  })
  return { held, started: true }
}

const logMaxBytes = 1_000_000

/** Rotates the server's log to `db.log.1` by copying, because the server keeps writing to the same file. */
export async function boundLog(file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined)
  if (found === undefined || found.size <= logMaxBytes) return
  await copyFile(file, `${file}.1`)
  await truncate(file)
}

async function ensureDatabase(place: Place, binaries: Binaries, mayMake: boolean): Promise<void> {
  const version = await databaseVersion(place.db)
  if (version === undefined && mayMake) return makeDatabase(place, binaries)
  if (version === undefined)
    throw new StartError(
      'data_dir_unusable',
      `The database directory ${place.db} has disappeared. Put it back.`,
      78,
    )
  if (version === binaries.major) return
  throw new StartError(
    'database_version',
    `${place.db} was made by PostgreSQL ${version}, but the installed programs are PostgreSQL ${binaries.major}. Back it up with the old version (\`cellkeep backup\`, with CELLKEEP_POSTGRES_BIN set to a PostgreSQL ${version}), move ${place.db} away, and restore the backup with the new one (\`cellkeep restore\`).`,
    78,
  )
}

/**
 * PostgreSQL believes a lock file as long as any process has its pid, which is usual after the restart of a
 * container. Orphaned backends remain safe: the server also refuses shared memory that is in use.
 */
async function dropStaleLock(file: string, db: string): Promise<void> {
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  // A server that was just stopping has removed it.
  if (text === undefined) return
  const pid = Number(text.split('\n')[0])
  // Empty: a server is writing it right now, or died while it did. Its time is ahead if the clock was set back since.
  const isStale =
    pid > 0 ? isAlive(pid) && !(await serves(pid, db)) : Math.abs(Date.now() - found.mtimeMs) > 2000
  if (isStale) await rm(file, { force: true })
}

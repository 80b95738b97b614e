import { copyFile, readFile, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { StartError } from '../errors.ts'
import { type Binaries, type BinariesOptions, findBinaries } from './binaries.ts'
import { databaseVersion, dropUnfinished, isAlive, makeDatabase } from './making.ts'
import type { Place } from './place.ts'
import { connect, type Held, serves, socketName, startPostgres } from './postgres-process.ts'

export type OpenOptions = Pick<BinariesOptions, 'postgresBin' | 'onNotice'> & {
  /** Where there is no database, make one. Never under a service that had one: it would go on with nothing. */
  mayMake: boolean
}

/**
 * A connection to the running server of a data dir, which is started, and made, where there is none. Rejects
 * with `StartError`, `PostgresFailure`, or the server's error while it starts or stops.
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
  await dropStaleLock(join(place.db, 'postmaster.pid'), place.db)
  await dropStaleLock(join(place.socketDir, `${socketName}.lock`), place.db)
  await boundLog(place.logFile)
  return { held: await startPostgres({ binaries, ...place }, signal), started: true }
}

const logMaxBytes = 1_000_000

/** Keeps the server's log small: the older part moves to `db.log.1`. The server goes on writing to the same file. */
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
      `The database ${place.db} was there and is gone: put it back`,
      78,
    )
  if (version === binaries.major) return
  throw new StartError(
    'database_version',
    `${place.db} was made by PostgreSQL ${version}, and the programs at hand are PostgreSQL ${binaries.major}: back it up with the old version (\`cellkeep backup\`, with CELLKEEP_POSTGRES_BIN naming a PostgreSQL ${version}), move ${place.db} away, and restore the backup with the new one (\`cellkeep restore\`)`,
    78,
  )
}

/**
 * PostgreSQL takes a lock file for valid while any process has the number in it, which after the restart of a
 * container is the rule. Orphaned backends stay safe: the server also refuses shared memory that is in use.
 */
async function dropStaleLock(file: string, db: string): Promise<void> {
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return
  const pid = Number((await readFile(file, 'utf8')).split('\n')[0])
  // Empty: a server that is writing it this moment, or one that ended while it did.
  const isStale = pid > 0 ? isAlive(pid) && !(await serves(pid, db)) : Date.now() - found.mtimeMs > 2000
  if (isStale) await rm(file, { force: true })
}

import { chmod, lstat, mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { StartError } from '../errors.ts'
import type { Log } from '../log/log.ts'
import { startEmbedded } from './embedded.ts'
import { isAtWork, ownMark, removeDatabase } from './making.ts'
import { stopPostgres } from './postgres-process.ts'

const prefix = 'cellkeep-temporary-'

type Options = {
  postgresBin?: string | undefined
  postgresUser?: string | undefined
  log: Log
  /** Aborting it removes the server at once, even during the work. */
  interrupt: AbortSignal
}

/**
 * Runs `work` on an empty temporary database, which is removed afterwards. Also removes those that killed runs left.
 */
export async function withTemporaryServer<T>(
  { interrupt, ...options }: Options,
  work: (connection: pg.ClientConfig) => Promise<T>,
): Promise<T> {
  await removeAbandoned()
  const dataDir = join(tmpdir(), `${prefix}${await ownMark()}`)
  const remove = (): void => void removeServer(dataDir).catch(() => undefined)
  interrupt.addEventListener('abort', remove, { once: true })
  await mkdir(dataDir, { mode: 0o700 }).catch(({ message }: Error) => {
    throw new StartError(
      'temporary_directory_unusable',
      `The temporary directory cannot be used: ${message}. Set TMPDIR to a directory that you may write.`,
      78,
    )
  })
  try {
    await chmod(dataDir, process.geteuid?.() === 0 ? 0o711 : 0o700)
    const embedded = await startEmbedded({ ...options, dataDir, role: 'command', stop: interrupt })
    try {
      return await work(embedded.connection)
    } finally {
      await embedded.close()
    }
  } catch (error) {
    throw interrupt.aborted ? error : await fullOr(error, dataDir)
  } finally {
    await removeServer(dataDir)
  }
}

/** A segment of the write-ahead log: a server that finds no room for the next one ends, and says so in its log only. */
const segmentBytes = 16_777_216

/** What a failure means if the disk of the temporary directory is full. */
async function fullOr(error: unknown, dataDir: string): Promise<unknown> {
  const space = await statfs(dataDir).catch(() => undefined)
  if (space === undefined || space.bavail * space.bsize > segmentBytes) return error
  return new StartError(
    'storage_full',
    `The disk of the temporary directory ${tmpdir()} is full. Free space there, or set TMPDIR to a directory on another disk.`,
    3,
    { cause: error },
  )
}

async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir()).catch(() => [])) {
    if (!name.startsWith(prefix) || (await isAtWork(name.slice(prefix.length)))) continue
    const dir = join(tmpdir(), name)
    // Another user may have made a directory of this name.
    if ((await lstat(dir).catch(() => undefined))?.uid === process.geteuid?.()) await removeServer(dir)
  }
}

async function removeServer(dataDir: string): Promise<void> {
  await stopPostgres(join(dataDir, 'db')).catch(() => undefined)
  await removeDatabase(join(dataDir, 'db'))
  await rm(dataDir, { recursive: true, force: true })
}

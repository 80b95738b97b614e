import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { StartError } from '../errors.ts'
import { syncDirectory } from '../files/private-file.ts'
import type { Binaries } from './binaries.ts'
import type { Place } from './place.ts'
import { initDatabase, isAlive } from './postgres-process.ts'
import { type DatabaseUser, runAs } from './user.ts'

/** Above the largest pool that the configuration allows (200), with room for commands. */
const settings = `
# Cellkeep
max_connections = 250
shared_buffers = 128MB
`

const making = 'db.making-'

/** Makes the database under a temporary name and renames it, so that `db` is never half made. */
export async function makeDatabase(place: Place, binaries: Binaries): Promise<void> {
  const made = join(place.dataDir, `${making}${await ownMark()}`)
  await mkdir(made, { mode: 0o700 })
  try {
    await chmod(made, 0o700)
    if (place.user !== undefined) await chown(made, place.user.uid, place.user.gid)
    await initDatabase(binaries, made, place.user)
    await append(join(made, 'postgresql.conf'), settings, place.user)
    await rename(made, place.db)
    await syncDirectory(place.dataDir)
  } catch (error) {
    await removeDatabase(made)
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
    // Another process was faster, or something else occupies the path.
    if ((await databaseVersion(place.db)) === undefined)
      throw new StartError(
        'data_dir_unusable',
        `${place.db} holds files, but no database. Move it away, or set CELLKEEP_DATA_DIR to another directory.`,
        78,
      )
  }
}

const run = promisify(execFile)

/** Runs as the owner of the directory, who could replace the file by a link that root would follow. */
async function append(file: string, text: string, user: DatabaseUser | undefined): Promise<void> {
  await run('/bin/sh', ['-c', 'printf %s "$2" >>"$1"', 'sh', file, text], runAs(user))
}

/**
 * Removes the content as the owner of the directory, who could redirect root with links while it runs. The
 * owner may not remove the directory itself.
 */
export async function removeDatabase(dir: string): Promise<void> {
  const found = await lstat(dir).catch(() => undefined)
  if (found === undefined) return
  if (found.uid !== process.geteuid?.())
    await run(
      '/bin/sh',
      ['-c', 'rm -rf -- "$1"', 'sh', dir],
      runAs({ name: '', uid: found.uid, gid: found.gid }),
    ).catch(() => {})
  else await rm(dir, { recursive: true, force: true })
  await rmdir(dir).catch(() => {})
}

/** Removes what killed starts left behind. */
export async function dropUnfinished(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(making)) continue
    if (await isAtWork(name.slice(making.length))) continue
    // An orphaned `initdb` may still write into it; the next start removes the rest.
    await removeDatabase(join(dataDir, name)).catch(() => {})
  }
}

/** Identifies this process on systems without /proc. */
const mark = randomBytes(4).toString('hex')

const ownBirth = async (): Promise<string> => (await birthOf(process.pid)) ?? mark

/** Marks what this process makes, for `isAtWork`. */
export const ownMark = async (): Promise<string> => `${process.pid}-${await ownBirth()}`

/** True if the process that made it is alive, and not a later one with its pid, as after a restart of the container. */
export async function isAtWork(ofMaker: string): Promise<boolean> {
  const [number, birth] = ofMaker.split('-')
  const pid = Number(number)
  if (pid === process.pid) return birth === (await ownBirth())
  return process.platform === 'linux' ? (await birthOf(pid)) === birth : isAlive(pid)
}

/** The start time of a process since boot; undefined if there is no such process or no /proc. */
async function birthOf(pid: number): Promise<string | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The process name, in parentheses, may contain spaces.
  return line?.slice(line.lastIndexOf(')')).split(' ')[20]
}

export async function databaseVersion(db: string): Promise<number | undefined> {
  try {
    return Number(await readFile(join(db, 'PG_VERSION'), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new StartError(
      'data_dir_unusable',
      `The database in ${db} cannot be read: ${(error as Error).message}`,
      78,
    )
  }
}

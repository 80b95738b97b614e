import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, lstat, mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { StartError } from '../errors.ts'
import type { Binaries } from './binaries.ts'
import type { Place } from './place.ts'
import { initDatabase } from './postgres-process.ts'
import { type DatabaseUser, runAs } from './user.ts'

/** Above the largest pool that the configuration allows (200), with room for commands. */
const settings = `
# Cellkeep
max_connections = 250
shared_buffers = 128MB
`

const making = 'db.making-'

/** Under another name first: a database that was interrupted half-way never stands at `db`. */
export async function makeDatabase(place: Place, binaries: Binaries): Promise<void> {
  const made = join(place.dataDir, `${making}${process.pid}-${await ownBirth()}`)
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
    // Another process was faster, or something else is in the way.
    if ((await databaseVersion(place.db)) === undefined)
      throw new StartError(
        'data_dir_unusable',
        `${place.db} holds files, but no database: move it away, or name another CELLKEEP_DATA_DIR`,
        78,
      )
  }
}

const run = promisify(execFile)

/** As the user who owns the directory: root would follow a link that he put in the place of the file. */
async function append(file: string, text: string, user: DatabaseUser | undefined): Promise<void> {
  await run('/bin/sh', ['-c', 'printf %s "$2" >>"$1"', 'sh', file, text], runAs(user))
}

/** Its content as its owner, who could lead root elsewhere half-way; the directory itself is not his to remove. */
async function removeDatabase(dir: string): Promise<void> {
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

/** Removes what a start that was killed half-way left. */
export async function dropUnfinished(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(making)) continue
    const [pid, birth] = name.slice(making.length).split('-')
    if (await isMaker(Number(pid), birth)) continue
    // An orphaned `initdb` may still write into it; what is left of it goes the next time.
    await removeDatabase(join(dataDir, name)).catch(() => {})
  }
}

/** Stands for the start of this process where the system tells none. */
const mark = randomBytes(4).toString('hex')

const ownBirth = async (): Promise<string> => (await birthOf(process.pid)) ?? mark

/** Tells a process from another that got its number, as in a restarted container or after a while. */
async function isMaker(pid: number, birth: string | undefined): Promise<boolean> {
  if (pid === process.pid) return birth === (await ownBirth())
  return process.platform === 'linux' ? (await birthOf(pid)) === birth : isAlive(pid)
}

/** When a process began, counted from the boot; undefined where there is none, or no way to know. */
async function birthOf(pid: number): Promise<string | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name, in brackets, may hold spaces.
  return line?.slice(line.lastIndexOf(')')).split(' ')[20]
}

export async function databaseVersion(db: string): Promise<number | undefined> {
  try {
    return Number(await readFile(join(db, 'PG_VERSION'), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new StartError(
      'data_dir_unusable',
      `The database ${db} cannot be read: ${(error as Error).message}`,
      78,
    )
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Makes the rename itself survive a power cut. */
async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

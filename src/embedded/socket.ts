import { createHash } from 'node:crypto'
import { chmod, chown, lstat, mkdir, mkdtemp, readlink, rmdir, symlink, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { socketName } from './postgres-process.ts'
import { barrierTo, type DatabaseUser } from './user.ts'

/** Bytes of a socket's path, its end left out: what the kernel's address structure holds. */
const pathMax = process.platform === 'darwin' ? 103 : 107

const fits = (dir: string): boolean => Buffer.byteLength(join(dir, socketName)) <= pathMax

/**
 * The socket directory of a data dir, 0700 and the database user's: `socket` in it. Where that path is too long
 * for a socket, `socket` is a link to a private directory under the temporary one, so that every process of
 * this data dir finds the same (contract 1, section 16).
 */
export async function socketDirectory(dataDir: string, user: DatabaseUser | undefined): Promise<string> {
  const own = join(dataDir, 'socket')
  const linked = await readlink(own).catch(() => undefined)
  if (fits(own)) {
    // The data dir was moved here from a longer path.
    if (linked !== undefined) await unlink(own).catch(() => {})
    await mkdir(own, { mode: 0o700 }).then(() => give(own, user), ignoreExisting)
    return own
  }
  // By the path: a copied data dir must not take the link for its own, and so join the original's server.
  const prefix = `cellkeep-${createHash('sha256').update(dataDir).digest('hex').slice(0, 8)}-`
  const isOurs = linked !== undefined && basename(linked).startsWith(prefix)
  if (isOurs && (await isPrivate(linked, user))) return linked
  return linkTo(await temporaryDirectory(prefix, user), own, linked)
}

/** Replaces what stood at `own`; where another process made its link first, that one's directory counts. */
async function linkTo(made: string, own: string, found: string | undefined): Promise<string> {
  if (found !== undefined) await unlink(own).catch(() => {})
  // A directory: the data dir was moved here from a shorter path.
  else await rmdir(own).catch(() => {})
  const isFirst = await symlink(made, own).then(() => true, ignoreExisting)
  if (isFirst) return made
  await rmdir(made)
  return readlink(own)
}

/**
 * A new private directory, short enough for a socket and in reach of the user: under `within` where that will do,
 * else under the temporary one.
 */
export async function temporaryDirectory(
  prefix: string,
  user: DatabaseUser | undefined,
  within = tmpdir(),
): Promise<string> {
  for (const parent of [within, tmpdir(), '/tmp']) {
    const reachable = user === undefined || (await barrierTo(parent, user)) === undefined
    if (!reachable || !fits(join(parent, `${prefix}XXXXXX`))) continue
    const made = await mkdtemp(join(parent, prefix))
    await give(made, user)
    return made
  }
  throw new Error(
    `The temporary directory ${tmpdir()} has too long a path for a socket, and so have all others`,
  )
}

async function give(dir: string, user: DatabaseUser | undefined): Promise<void> {
  await chmod(dir, 0o700)
  if (user !== undefined) await chown(dir, user.uid, user.gid)
}

/** True when the directory is there, or could be made again, and belongs to nobody else. */
async function isPrivate(dir: string, user: DatabaseUser | undefined): Promise<boolean> {
  // A cleaner of temporary files may have taken it; the name is kept for processes that hold it.
  await mkdir(dir, { mode: 0o700 }).then(
    () => give(dir, user),
    () => {},
  )
  const found = await lstat(dir).catch(() => undefined)
  const owner = user?.uid ?? process.getuid?.()
  return found?.isDirectory() === true && found.uid === owner && (found.mode & 0o077) === 0
}

const ignoreExisting = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EEXIST') throw error
}

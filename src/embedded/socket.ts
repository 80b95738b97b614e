import { createHash } from 'node:crypto'
import { chmod, chown, lstat, mkdir, mkdtemp, readlink, rmdir, symlink, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { socketName } from './postgres-process.ts'
import { barrierTo, type DatabaseUser } from './user.ts'

/** The longest socket path in bytes, without its final NUL, that the kernel's address structure holds. */
const pathMax = process.platform === 'darwin' ? 103 : 107

const fits = (dir: string): boolean => Buffer.byteLength(join(dir, socketName)) <= pathMax

/**
 * The socket directory of a data dir: `socket` in it, mode 0700, owned by the database user. If that path is
 * too long for a socket, `socket` is a link to a private temporary directory, so that every process of the
 * data dir finds the same one.
 */
export async function socketDirectory(dataDir: string, user: DatabaseUser | undefined): Promise<string> {
  const own = join(dataDir, 'socket')
  const linked = await readlink(own).catch(() => undefined)
  if (fits(own)) {
    // The data dir was moved here from a longer path.
    if (linked !== undefined) await unlink(own).catch(() => {})
    await mkdir(own, { mode: 0o700 }).catch(ignoreExisting)
    // Even one that exists: the start that made it may have been killed, and `db` been given to another user.
    await give(own, user)
    return own
  }
  // The name depends on the path: a copied data dir must not follow its link to the original's server.
  const prefix = `cellkeep-${createHash('sha256').update(dataDir).digest('hex').slice(0, 8)}-`
  const isOurs = linked !== undefined && basename(linked).startsWith(prefix)
  if (isOurs && (await isPrivate(linked, user))) return linked
  return linkTo(await temporaryDirectory(prefix, user), own, linked)
}

/** Replaces what was at `own`; if another process made its link first, uses the directory of that one. */
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
 * Makes a private directory that the user can reach and whose path is short enough for a socket: under
 * `within` if possible, else in a temporary directory.
 */
export async function temporaryDirectory(
  prefix: string,
  user: DatabaseUser | undefined,
  within = tmpdir(),
): Promise<string> {
  for (const parent of [within, tmpdir(), '/tmp']) {
    const reachable = user === undefined || (await barrierTo(parent, user)) === undefined
    if (!reachable || !fits(join(parent, `${prefix}XXXXXX`))) continue
    // TMPDIR may name a directory that does not exist or cannot be written.
    const made = await mkdtemp(join(parent, prefix)).catch(() => undefined)
    if (made === undefined) continue
    await give(made, user)
    return made
  }
  throw new Error(
    `No temporary directory can hold the socket of the database: paths such as ${tmpdir()} are too long, or cannot be entered or written`,
  )
}

async function give(dir: string, user: DatabaseUser | undefined): Promise<void> {
  await chmod(dir, 0o700)
  if (user !== undefined) await chown(dir, user.uid, user.gid)
}

/** True if the directory exists, or could be made again, and no other user owns it or may enter it. */
async function isPrivate(dir: string, user: DatabaseUser | undefined): Promise<boolean> {
  // A cleaner of temporary files may have removed it; other processes still use the name.
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

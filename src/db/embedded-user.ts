import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartError } from '../errors.ts'

/** The unprivileged user that a root process runs PostgreSQL as; it owns `db` and the socket directory. */
export type DatabaseUser = { name: string; uid: number; gid: number }

/**
 * Whom PostgreSQL runs as: undefined where the process is not root and runs it itself, else the owner of an
 * existing `db`, else `postgres`, else `nobody` (contract 1, section 16). Exit 78 where there is nobody.
 */
export async function databaseUser(db: string): Promise<DatabaseUser | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const users = await readUsers()
  const owner = await stat(db).catch(() => undefined)
  if (owner !== undefined && owner.uid !== 0) {
    const name = users.find(({ uid }) => uid === owner.uid)?.name ?? `uid ${owner.uid}`
    return { name, uid: owner.uid, gid: owner.gid }
  }
  const user = ['postgres', 'nobody'].flatMap((name) => users.filter((known) => known.name === name))[0]
  if (user === undefined)
    throw new StartError(
      'no_database_user',
      'PostgreSQL refuses to run as root, and this machine has neither a user `postgres` nor `nobody` to run it as: start Cellkeep as an ordinary user, or set CELLKEEP_DATABASE_URL',
      78,
    )
  if (owner !== undefined)
    throw new StartError(
      'data_dir_unusable',
      `${db} belongs to root, but PostgreSQL refuses to run as root: give it to the database's user with \`chown -R ${user.name}: ${db}\``,
      78,
    )
  return user
}

/** The first directory on the way to `path` that the user may not pass, or undefined when it gets there. */
export async function barrierTo(path: string, user: DatabaseUser): Promise<string | undefined> {
  const parent = dirname(path)
  const above = parent === path ? undefined : await barrierTo(parent, user)
  if (above !== undefined) return above
  const found = await stat(path).catch(() => undefined)
  // What does not exist yet is made by us, reachable.
  if (found === undefined || !found.isDirectory()) return undefined
  const bit = found.uid === user.uid ? 0o100 : found.gid === user.gid ? 0o010 : 0o001
  return (found.mode & bit) === 0 ? path : undefined
}

/** Options of a child process: as the user, and from a directory that it may stand in. */
export const runAs = (user: DatabaseUser | undefined) =>
  // `| 0`: macOS has nobody at -2, which a child process takes as a signed number only.
  user === undefined ? { cwd: '/' } : { cwd: '/', uid: user.uid | 0, gid: user.gid | 0 }

async function readUsers(): Promise<DatabaseUser[]> {
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n')
  return lines
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4)
    .map(([name, , uid, gid]) => ({ name: name as string, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }))
}

import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartError } from '../errors.ts'

/** The unprivileged user that a root process runs PostgreSQL as; it owns `db` and the socket directory. */
export type DatabaseUser = { name: string; uid: number; gid: number }

/** The user shared by daemons without a user of their own: each of them could read its database. */
export const sharedUser = 'nobody'

/**
 * The user that PostgreSQL runs as. Undefined if this process is not root: PostgreSQL then runs as the same
 * user. Else the owner of an existing `db`, else the configured user, else `cellkeep`, `postgres` or `nobody`,
 * whichever exists first. Throws a StartError (78) if there is none.
 */
export async function databaseUser(db: string, named?: string): Promise<DatabaseUser | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const users = await readUsers()
  const asked = users.find(({ name }) => name === named)
  if (named !== undefined && (asked === undefined || asked.uid === 0))
    throw new StartError(
      'no_database_user',
      `CELLKEEP_POSTGRES_USER=${named} does not name a user of this machine other than root. Create the user with \`useradd --system ${named}\`, or unset the setting.`,
      78,
    )
  const user =
    asked ??
    ['cellkeep', 'postgres', sharedUser].flatMap((name) => users.filter((known) => known.name === name))[0]
  const owner = await stat(db).catch(() => undefined)
  if (owner !== undefined && owner.uid !== 0 && (named === undefined || owner.uid === user?.uid)) {
    const name = users.find(({ uid }) => uid === owner.uid)?.name ?? `uid ${owner.uid}`
    return { name, uid: owner.uid, gid: owner.gid }
  }
  if (user === undefined)
    throw new StartError(
      'no_database_user',
      'PostgreSQL refuses to run as root, and this machine has no other user for it. Create one with `useradd --system cellkeep`, start Cellkeep as an ordinary user, or set CELLKEEP_DATABASE_URL.',
      78,
    )
  if (owner !== undefined)
    throw new StartError(
      'data_dir_unusable',
      `${db} belongs to ${owner.uid === 0 ? 'root, but PostgreSQL refuses to run as root' : `uid ${owner.uid}, but CELLKEEP_POSTGRES_USER names ${user.name}`}. Stop what uses it, then give it to the user of the database with \`chown -R ${user.name}: ${db}\`.`,
      78,
    )
  return user
}

/** The first directory on the way to `path` that the user may not enter; undefined if it can reach `path`. */
export async function barrierTo(path: string, user: DatabaseUser): Promise<string | undefined> {
  const parent = dirname(path)
  const above = parent === path ? undefined : await barrierTo(parent, user)
  if (above !== undefined) return above
  const found = await stat(path).catch(() => undefined)
  // A directory that does not exist yet will be made with the right mode.
  if (found === undefined || !found.isDirectory()) return undefined
  const bit = found.uid === user.uid ? 0o100 : found.gid === user.gid ? 0o010 : 0o001
  return (found.mode & bit) === 0 ? path : undefined
}

/** Options of a child process: run as the user, in a working directory that the user may enter. */
export const runAs = (user: DatabaseUser | undefined) =>
  // `| 0`: on macOS nobody is -2, and spawn takes that as a signed number only.
  user === undefined ? { cwd: '/' } : { cwd: '/', uid: user.uid | 0, gid: user.gid | 0 }

async function readUsers(): Promise<DatabaseUser[]> {
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n')
  return lines
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4)
    .map(([name, , uid, gid]) => ({ name: name as string, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }))
}

import type { App } from '../core/app.ts'
import type { Queryable } from '../db/db.ts'
import { accountKey, identifierKey, keyAt } from '../limits/limiters.ts'
import { knownAddresses } from '../sessions/addresses.ts'
import { fold } from './formats.ts'

/** The buckets of an account's failed logins: by username, e-mail and id, for all addresses and each known one. */
export async function loginBuckets(
  db: Queryable,
  { id, username, email }: { id: string; username: string; email: string | null },
): Promise<string[]> {
  const names = email === null ? [username] : [username, fold(email)]
  const addresses = await knownAddresses(db, id)
  const buckets = [...names.map(identifierKey), accountKey(id)]
  return buckets.flatMap((bucket) => [bucket, ...addresses.map((address) => keyAt(bucket, address))])
}

/** Clears them on every node, whether it counts in the database or in its memory. */
export async function clearLogins(app: App, keys: string[]): Promise<void> {
  await app.limiters.clear('login_account', keys)
  app.hub.publish({ notifications: [], closings: [], wroteAudit: false, cleared: keys })
}

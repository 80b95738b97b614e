import type { App } from '../core/app.ts'
import type { Queryable } from '../db/db.ts'
import { accountKey, identifierKey, keyAt } from '../limits/limiters.ts'
import { knownAddresses } from '../sessions/addresses.ts'
import { fold } from './formats.ts'

type Names = { id: string; username: string; email: string | null }

/** The buckets of an account's failed logins from addresses that it does not know: by username, e-mail and id. */
export const bucketsOf = ({ id, username, email }: Names): string[] => [
  identifierKey(username),
  ...(email === null ? [] : [identifierKey(fold(email))]),
  accountKey(id),
]

/** The same buckets, and those of each address that the account knows. */
export async function loginBuckets(db: Queryable, account: Names): Promise<string[]> {
  const addresses = await knownAddresses(db, account.id)
  return bucketsOf(account).flatMap((bucket) => [
    bucket,
    ...addresses.map((address) => keyAt(bucket, address)),
  ])
}

/** Clears these buckets on every node, whether it counts in the database or in its memory. */
export async function clearLogins(app: App, keys: string[]): Promise<void> {
  await app.limiters.clear('login_account', keys)
  app.hub.publish({ notifications: [], closings: [], wroteAudit: false, cleared: keys })
}

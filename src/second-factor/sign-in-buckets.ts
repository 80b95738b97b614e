import { bucketsOf } from '../accounts/login-buckets.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { keyAt } from '../limits/limiters.ts'
import { seenToday } from '../sessions/addresses.ts'

type Named = { username: string; email: string | null; seen: boolean | null }

/** The buckets of `login_account` that a sign-in from this address clears: of the username, the e-mail and the account. */
export async function signInBuckets(
  db: Pick<Queryable, 'first'>,
  account_id: string,
  ip: string,
): Promise<string[]> {
  const named = await db.first<Named>(sql`
    select username, email, ${seenToday(sql`account.id`, ip)} as seen from account where id = ${account_id}::uuid`)
  if (!named) throw refusal('account_vanished')
  const { username, email, seen } = named
  const buckets = bucketsOf({ id: account_id, username, email })
  return buckets.map((bucket) => (seen === null ? bucket : keyAt(bucket, ip)))
}

import { bucketsOf } from '../accounts/login-buckets.ts'
import { type Queryable, sql } from '../db/db.ts'
import { keyAt } from '../limits/limiters.ts'
import { seenToday } from '../sessions/addresses.ts'

/** The buckets of `login_account` that a sign-in from an address clears: of the account, and of each name that it signs in by. */
export async function loginBuckets(db: Queryable, account_id: string, ip: string): Promise<string[]> {
  const { username, email, seen } = await db.one<{
    username: string
    email: string | null
    seen: boolean | null
  }>(sql`
    select username, email, ${seenToday(sql`account.id`, ip)} as seen from account where id = ${account_id}::uuid`)
  const buckets = bucketsOf({ id: account_id, username, email })
  return buckets.map((bucket) => (seen === null ? bucket : keyAt(bucket, ip)))
}

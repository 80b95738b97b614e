import { fold } from '../accounts/formats.ts'
import { type Queryable, sql } from '../db/db.ts'
import { identifierKey, keyAt } from '../limits/limiters.ts'
import { seenToday } from '../sessions/addresses.ts'

/** The buckets of `login_account` that a sign-in from an address clears: of each name that the account signs in by. */
export async function loginBuckets(db: Queryable, account_id: string, ip: string): Promise<string[]> {
  const { username, email, seen } = await db.one<{
    username: string
    email: string | null
    seen: boolean | null
  }>(sql`
    select username, email, ${seenToday(sql`account.id`, ip)} as seen from account where id = ${account_id}::uuid`)
  const names = email === null ? [username] : [username, fold(email)]
  return names.map(identifierKey).map((bucket) => (seen === null ? bucket : keyAt(bucket, ip)))
}

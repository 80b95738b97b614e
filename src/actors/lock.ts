import { lockAccounts } from '../accounts/locks.ts'
import type { Fail } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'

/**
 * Locks the account of a live actor, in one statement with the accounts in `others`, and returns its id. Actors
 * are removed only under that lock, so the actor stays live until the commit. Refuses with `actor_not_found`.
 */
export async function lockLiveActor(
  db: Queryable,
  actor_id: string,
  fail: Fail<'actor_not_found'>,
  others: readonly string[] = [],
): Promise<string> {
  // An actor never changes its account, so no lock is needed to read it.
  const owner = await db.first<{ account_id: string }>(sql`
    select account_id from actor where id = ${actor_id}::uuid`)
  if (!owner) throw fail('actor_not_found')
  const { account_id } = owner
  const account = (await lockAccounts(db, [account_id, ...others])).get(account_id)
  const isLive = await db.first(sql`select 1 from actor where id = ${actor_id}::uuid and deleted_at is null`)
  if (!isLive || !account || account.deleted_at !== null) throw fail('actor_not_found')
  return account_id
}

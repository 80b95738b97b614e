import { type Queryable, sql } from '../db/db.ts'

/** An actor as operators see it. A removed one stays stored with its grants until its account is purged. */
export type ActorEntry = {
  id: string
  account_id: string
  name: string
  created_at: string
  updated_at: string | null
  deleted_at: string | null
}

export const actorColumns = sql`id, account_id, name, created_at, updated_at, deleted_at`

export async function countLive(db: Queryable, account_id: string): Promise<number> {
  const row = await db.first<{ live: number }>(sql`
    select count(*) as live from actor where account_id = ${account_id}::uuid and deleted_at is null`)
  return (row as { live: number }).live
}

/** The target columns of an audit row about an actor. */
export const targetOf = ({ id, account_id }: Pick<ActorEntry, 'id' | 'account_id'>) => ({
  target_actor_id: id,
  target_account_id: account_id,
})

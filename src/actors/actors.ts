import { z } from 'zod'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'

/** What every account may see of an actor. `display_name` is left out when blank. */
export const ActorLabel = z.strictObject({
  id: Uuid,
  username: z.string(),
  display_name: z.string().optional(),
})
export type ActorLabel = z.output<typeof ActorLabel>

export type LabelRow = { id: string; username: string; name: string }

export const labelColumns = sql`actor.id, account.username, actor.name`

/** Live: neither the actor nor its account is deleted. */
export const liveActors = sql`actor join account on account.id = actor.account_id
  and actor.deleted_at is null and account.deleted_at is null`

export function toLabel({ id, username, name }: LabelRow): ActorLabel {
  const display_name = name.trim()
  return display_name === '' ? { id, username } : { id, username, display_name }
}

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
  const { live } = await db.one<{ live: number }>(sql`
    select count(*) as live from actor where account_id = ${account_id}::uuid and deleted_at is null`)
  return live
}

/** The target columns of an audit row about an actor. */
export const targetOf = ({ id, account_id }: Pick<ActorEntry, 'id' | 'account_id'>) => ({
  target_actor_id: id,
  target_account_id: account_id,
})

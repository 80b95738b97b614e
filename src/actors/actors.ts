import { z } from 'zod'
import { sql } from '../db/db.ts'
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

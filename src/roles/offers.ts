import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import { Uuid } from '../core/wire.ts'
import { type Sql, sql } from '../db/db.ts'

/** Wire form of an offer that waits for an account, as admins see it (contract 2, section 2). */
export const PendingOffer = z.object({
  offer_id: Uuid,
  role: z.string(),
  scope_kind: z.string().nullable(),
  scope_id: Uuid.nullable(),
  from_actor_id: Uuid,
  from_username: z.string().nullable(),
  created_at: z.string(),
  expires_at: z.string(),
})

/** No final stamp. */
export const pending = sql`accepted_at is null and declined_at is null and retracted_at is null
  and superseded_at is null and expired_at is null`

/** Offers shown per account. */
const pendingMax = 100

/** The offers that wait for this account, soonest expiry first, as one JSON value. */
export const pendingOffers = (account_id: Sql): Sql => sql`coalesce((
  select json_agg(json_build_object('offer_id', o.offer_id, 'role', o.role, 'scope_kind', o.scope_kind,
    'scope_id', o.scope_id, 'from_actor_id', o.from_actor_id, 'from_username', grantor.username,
    'created_at', iso_timestamp(o.created_at), 'expires_at', iso_timestamp(o.expires_at))
    order by o.expires_at, o.offer_id)
  from (
    select * from role_grant_offer
    where to_account_id = ${account_id} and ${pending} and expires_at > now()
    order by expires_at, offer_id limit ${sql.raw(pendingMax)}
  ) o left join account grantor on grantor.id = o.from_account_id
), '[]'::json)`

export type SupersededOffer = {
  offer_id: string
  role: string
  scope_kind: string | null
  scope_id: string | null
  to_account_id: string
  to_actor_id: string | null
}

/** What the audit row of a superseded offer needs of `role_grant_offer o`. */
export const supersededColumns = sql`o.offer_id, o.role, o.scope_kind, o.scope_id, o.to_account_id, o.to_actor_id`

export type SupersedeCause = {
  reason: 'role_grant_revoked' | 'grantor_lost_authority'
  cause_id: string | null
  via?: string
}

/** One row per offer, by ascending id (contract 3, section 8.5). */
export function auditSuperseded(
  audit: Audit,
  offers: readonly SupersededOffer[],
  cause: SupersedeCause,
): void {
  const ordered = [...offers].sort((a, b) => (a.offer_id < b.offer_id ? -1 : 1))
  for (const { offer_id, role, scope_kind, scope_id, to_account_id, to_actor_id } of ordered)
    audit(
      'role_grant_offer_supersede',
      { offer_id, role, scope_kind, scope_id, ...cause },
      { target_account_id: to_account_id, target_actor_id: to_actor_id },
    )
}

import type { Audit } from '../audit/audit.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { auditSuperseded, pending, type SupersededOffer, supersededColumns } from './offers.ts'

/** An active grant and whose it is. */
export type ActiveGrant = {
  id: string
  actor_id: string
  account_id: string
  role: string
  scope_kind: string | null
  scope_id: string | null
}

/** The active grants of actors, live or not, that `which` picks among `role_grant g`. */
export const activeGrantsWhere = (db: Queryable, which: Sql): Promise<ActiveGrant[]> =>
  db.rows<ActiveGrant>(sql`
    select g.id, g.actor_id, actor.account_id, g.role, g.scope_kind, g.scope_id
    from role_grant g join actor on actor.id = g.actor_id
    where g.revoked_at is null and g.closed_at is null and (g.expires_at is null or g.expires_at > now())
      and ${which}
    order by g.id`)

export type Revocation = {
  cause: 'library' | 'keeper_transfer'
  /** The acting actor; null for the system. */
  revoked_by: string | null
  reason: string | null
  via?: string
  /** False where a consumer's callback decides who may offer: the service cannot judge it for them. */
  judgesOffers: boolean
}

/**
 * Ends an active grant, under the lock of its account, with the offers that fall with it (contract 3, section
 * 4.6): those of the same role and scope that wait for the actor, and those that the actor made by it.
 */
export async function endGrant(
  db: Queryable,
  audit: Audit,
  grant: ActiveGrant,
  { cause, revoked_by, reason, via, judgesOffers }: Revocation,
): Promise<void> {
  const { id: role_grant_id, actor_id, account_id, role, scope_kind, scope_id } = grant
  await db.run(sql`
    update role_grant set revoked_at = now(), revoked_by = ${revoked_by}::uuid, revoked_reason = ${reason}
    where id = ${role_grant_id}::uuid`)
  const detail = via === undefined ? {} : { via }
  audit(
    'role_grant_revoke',
    { role, role_grant_id, scope_kind, scope_id, cause, ...detail },
    { target_actor_id: actor_id, target_account_id: account_id },
  )
  const waiting = sql`o.to_account_id = ${account_id}::uuid
    and (o.to_actor_id is null or o.to_actor_id = ${actor_id}::uuid)
    and o.scope_kind is not distinct from ${scope_kind} and o.scope_id is not distinct from ${scope_id}::uuid`
  // What still authorises an offer: another active grant that is global or at the offer's own scope.
  const unauthorised = sql`o.from_actor_id = ${actor_id}::uuid and not exists (
    select from role_grant g where g.actor_id = o.from_actor_id and g.role = o.role
      and g.revoked_at is null and g.closed_at is null and (g.expires_at is null or g.expires_at > now())
      and (g.scope_id is null or (g.scope_kind = o.scope_kind and g.scope_id = o.scope_id)))`
  const ended = await db.rows<SupersededOffer & { made: boolean }>(sql`
    with falling as (
      select offer_id from role_grant_offer o
      where o.role = ${role} and ${pending} and o.expires_at > now()
        and ((${waiting}) ${judgesOffers ? sql`or (${unauthorised})` : sql.empty})
      order by offer_id for update
    )
    update role_grant_offer o set superseded_at = now()
    from falling where o.offer_id = falling.offer_id
    returning ${supersededColumns}, o.from_actor_id = ${actor_id}::uuid as made`)
  for (const [made, why] of [
    [false, 'role_grant_revoked'],
    [true, 'grantor_lost_authority'],
  ] as const)
    auditSuperseded(
      audit,
      ended.filter((offer) => offer.made === made),
      { reason: why, cause_id: role_grant_id, ...detail },
    )
}

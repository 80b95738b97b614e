import { endsAuthority, lockAccountsOf, takeGuardLock } from '../accounts/locks.ts'
import { activeGrant } from '../auth/active-grant.ts'
import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { onlyVia, type Via } from '../core/operate.ts'
import { boundedCount } from '../db/bounded-count.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { anyOf, unplanned } from '../db/unplanned.ts'
import type { EventMetadata } from '../events.ts'
import {
  announceSuperseded,
  pendingFrom,
  pendingTo,
  type SupersedeCause,
  type Superseded,
  supersedeWhere,
} from '../offers/offers.ts'

/** An active grant with its actor and account. */
export type ActiveGrant = {
  id: string
  actor_id: string
  account_id: string
  role: string
  scope_kind: string | null
  scope_id: string | null
}

/** The active grants that `which` selects from `role_grant g`, by ascending id; their actors may be removed. */
export const activeGrantsWhere = (db: Queryable, which: Sql): Promise<ActiveGrant[]> =>
  db.rows<ActiveGrant>(sql`
    select g.id, g.actor_id, actor.account_id, g.role, g.scope_kind, g.scope_id
    from role_grant g join actor on actor.id = g.actor_id
    where ${activeGrant} and ${which}
    order by g.id`)

/**
 * Locks the account of an actor, in one statement with those in `others`, and reads the active grants that `which`
 * selects; none for an unknown actor.
 */
export async function lockActiveGrants(
  db: Queryable,
  actor_id: string,
  which: Sql,
  others: readonly string[] = [],
): Promise<ActiveGrant[]> {
  const [, grants] = await Promise.all([
    lockAccountsOf(db, actor_id, others),
    activeGrantsWhere(db, sql`g.actor_id = ${actor_id}::uuid and ${which}`),
  ])
  return grants
}

/**
 * The admin grant among these if ending it would leave no admin. Takes the guard lock if one of them is a global admin
 * grant.
 */
export async function lastAdminAmong(
  db: Queryable,
  grants: readonly ActiveGrant[],
): Promise<ActiveGrant | undefined> {
  const admin = grants.find(({ role, scope_id }) => role === 'admin' && scope_id === null)
  if (!admin) return undefined
  const [, { lastAdmin }] = await Promise.all([
    takeGuardLock(db),
    endsAuthority(db, { role_grant_id: admin.id }),
  ])
  return lastAdmin ? admin : undefined
}

export type Revocation = Via & {
  cause: EventMetadata<'role_grant_revoke'>['cause']
  /** The acting actor; null for the system. */
  revoked_by: string | null
  reason: string | null
}

type Tools = Pick<Work, 'db' | 'audit' | 'notify'>

/** Ends active grants and supersedes the offers that depend on them. The caller holds the account locks. */
export async function endGrants(
  app: App,
  work: Tools,
  grants: readonly ActiveGrant[],
  revocation: Revocation,
): Promise<void> {
  if (grants.length === 0) return
  const [, superseded] = await Promise.all([
    stampRevoked(work, grants, revocation),
    supersedeWith(app, work.db, grants),
  ])
  announceSuperseded(work, superseded, onlyVia(revocation))
}

/** Ends the grants alone, in the given order; one audit row and one notification each. */
export async function stampRevoked(
  { db, audit, notify }: Tools,
  grants: readonly ActiveGrant[],
  { cause, revoked_by, reason, via }: Revocation,
): Promise<void> {
  await db.run(sql`
    update role_grant set revoked_at = now(), revoked_by = ${revoked_by}::uuid, revoked_reason = ${reason}
    where id = ${anyOf(grants.map(({ id }) => id))}`)
  for (const { id: role_grant_id, actor_id, account_id, role, scope_kind, scope_id } of grants) {
    audit(
      'role_grant_revoke',
      { role, role_grant_id, scope_kind, scope_id, cause, ...onlyVia({ via }) },
      { target_actor_id: actor_id, target_account_id: account_id },
    )
    notify(account_id, 'role_grant_revoke', {
      role_grant_id,
      role,
      scope_id,
      ...(reason !== null && { reason }),
    })
  }
}

/**
 * The offers that fall with the grants of a query `ended`: pending offers of the same role and scope to the actor, and
 * offers of that role by the actor that none of its other grants authorises. If a consumer's callback authorises
 * offers, the service cannot judge the latter and leaves them. `offset 0` keeps the planner from reading all offers first.
 */
const falling = ({ authorizeOffer }: App): Sql => sql`
  select o.offer_id, 'role_grant_revoked' as reason, e.id as cause_id
  from ended e cross join lateral (
    select o.offer_id from role_grant_offer o
    where ${pendingTo(sql`e.account_id`)} and o.role = e.role
      and o.scope_kind is not distinct from e.scope_kind and o.scope_id is not distinct from e.scope_id
      and (o.to_actor_id is null or o.to_actor_id = e.actor_id)
    offset 0
  ) o
  ${authorizeOffer ? sql.empty : sql`union all ${unauthorised}`}`

/** How many offers would fall if the grant of a query `ended` were ended now. */
export const fallingCount = (app: App): Sql =>
  boundedCount(sql`select distinct offer_id from (${falling(app)}) f`)

async function supersedeWith(app: App, db: Queryable, grants: readonly ActiveGrant[]): Promise<Superseded[]> {
  const list = (key: keyof ActiveGrant) => grants.map((grant) => grant[key])
  const rows = await db.rows<SupersedeCause & { offer_id: string }>(sql`
    with ended as (
      select * from unnest(${unplanned(
        grants.map(({ id }) => id),
        'uuid[]',
      )}, ${list('actor_id')}::uuid[], ${list('account_id')}::uuid[],
        ${list('role')}::text[], ${list('scope_kind')}::text[], ${list('scope_id')}::uuid[])
        as e (id, actor_id, account_id, role, scope_kind, scope_id)
    )
    select distinct on (offer_id) offer_id, reason, cause_id from (${falling(app)}) f
    order by offer_id, reason desc, cause_id`)
  if (rows.length === 0) return []
  // Joined here rather than in SQL: the planner expects few rows and would compare each with each.
  const causes = new Map(rows.map(({ offer_id, ...cause }) => [offer_id, cause]))
  // By their ids alone: the planner expects one pending offer at most, and would read all of them for each id.
  const superseded = await supersedeWhere(db, sql`o.offer_id = ${anyOf([...causes.keys()])}`)
  return superseded.map((offer) => ({ offer, ...(causes.get(offer.offer_id) as SupersedeCause) }))
}

/** Offers that no other active grant, global or at the offer's scope, authorises. */
const unauthorised = sql`
  select o.offer_id, 'grantor_lost_authority', e.id
  from ended e cross join lateral (
    select o.offer_id from role_grant_offer o
    where ${pendingFrom(sql`e.actor_id`)} and o.role = e.role and not exists (
      select from role_grant g where g.actor_id = o.from_actor_id and g.role = o.role
        and g.id <> e.id and ${activeGrant}
        and (g.scope_id is null or (g.scope_kind = o.scope_kind and g.scope_id = o.scope_id)))
    offset 0
  ) o`

import { z } from 'zod'
import { liveActors } from '../actors/actors.ts'
import { activeGrants } from '../auth/active-grant.ts'
import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import type { Via } from '../core/operate.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { anyOf } from '../db/unplanned.ts'
import { refusal } from '../errors.ts'
import type { EventMetadata } from '../events.ts'
import type { Grantor, OfferQuestion } from '../registry/hooks.ts'
import type { Scope } from '../roles/scope.ts'
import { Offer } from '../wire/offer.ts'
import { Uuid } from '../wire/types.ts'

/** The columns of `role_grant_offer o` that make its wire form. */
export const offerColumns = sql.raw(
  Object.keys(Offer.shape)
    .map((key) => `o.${key}`)
    .join(', '),
)

/** Wire form of a pending offer to an account, as admins see it. */
export const PendingOffer = z.object({
  offer_id: Uuid,
  role: z.string(),
  scope_kind: z.string().nullable(),
  scope_id: Uuid.nullable(),
  from_actor_id: Uuid,
  from_username: z.string().nullable(),
  to_actor_id: Uuid.nullable(),
  created_at: z.string(),
  expires_at: z.string(),
})

/** No final stamp: pending, or lapsed but not yet stamped as expired. */
export const unstamped = sql`accepted_at is null and declined_at is null and retracted_at is null
  and superseded_at is null and expired_at is null`

/** `role_grant_offer o` can still be accepted. Judged at the time of the statement, as active grants are. */
export const pending = sql`${unstamped} and o.expires_at > statement_timestamp()`

const nil = sql`'00000000-0000-0000-0000-000000000000'`

/** The pending ones to an account. The condition on its id, and on the actor's below, lets only the index of it serve. */
export const pendingTo = (account_id: Sql): Sql =>
  sql`o.to_account_id = ${account_id} and o.to_account_id <> ${nil} and ${pending}`

/** The pending ones by an actor. */
export const pendingFrom = (actor_id: Sql): Sql =>
  sql`o.from_actor_id = ${actor_id} and o.from_actor_id <> ${nil} and ${pending}`

/** Max offers shown per account. */
const pendingMax = 100

/** The pending offers to this account, soonest expiry first, as one JSON value. */
export const pendingOffers = (account_id: Sql): Sql => sql`coalesce((
  select json_agg(json_build_object('offer_id', o.offer_id, 'role', o.role, 'scope_kind', o.scope_kind,
    'scope_id', o.scope_id, 'from_actor_id', o.from_actor_id, 'from_username', grantor.username,
    'to_actor_id', o.to_actor_id, 'created_at', iso_timestamp(o.created_at),
    'expires_at', iso_timestamp(o.expires_at))
    order by o.expires_at, o.offer_id)
  from (
    select * from role_grant_offer o
    where ${pendingTo(account_id)}
    order by expires_at, offer_id limit ${sql.raw(pendingMax)}
  ) o left join account grantor on grantor.id = o.from_account_id
), '[]'::json)`

/** An offer as the methods judge it. `is_expired` is true for a lapsed offer even if it is not yet stamped. */
export type StoredOffer = Offer & { is_expired: boolean }

export const storedColumns = sql`${offerColumns}, (o.expired_at is not null or o.expires_at <= statement_timestamp()) as is_expired`

/** Reads without a lock, for columns that never change, such as the accounts. */
export const readOffer = (db: Queryable, offer_id: string): Promise<StoredOffer | undefined> =>
  db.first<StoredOffer>(
    sql`select ${storedColumns} from role_grant_offer o where o.offer_id = ${offer_id}::uuid`,
  )

/** Reads and locks the row. The caller holds the lock of the recipient's account. */
export const lockOffer = (db: Queryable, offer_id: string): Promise<StoredOffer | undefined> =>
  db.first<StoredOffer>(
    sql`select ${storedColumns} from role_grant_offer o where o.offer_id = ${offer_id}::uuid for update`,
  )

/** Refuses an offer that is no longer pending, including a lapsed one. */
export function refuseEnded(offer: StoredOffer): void {
  const { accepted_at, declined_at, retracted_at, superseded_at, is_expired } = offer
  if (accepted_at ?? declined_at ?? retracted_at ?? superseded_at) throw refusal('role_grant_offer_terminal')
  if (is_expired) throw refusal('role_grant_offer_expired')
}

/** Stamps one locked offer and returns it as stored. */
export const stampOffer = (db: Queryable, offer_id: string, stamps: Sql): Promise<Offer> =>
  db.one<Offer>(sql`
    update role_grant_offer o set ${stamps} where o.offer_id = ${offer_id}::uuid returning ${offerColumns}`)

/** Supersedes those of the offers that `which` selects which are still pending; locks all by ascending id. */
export const supersedeWhere = (db: Queryable, which: Sql): Promise<Offer[]> =>
  db.rows<Offer>(sql`
    with held as (
      select o.offer_id, (${pending}) as is_pending from role_grant_offer o
      where ${which} order by o.offer_id for update
    )
    update role_grant_offer o set superseded_at = now() from held
    where o.offer_id = held.offer_id and held.is_pending
    returning ${offerColumns}`)

/** Why an offer was superseded, and the id of the grant, offer, account or scope that caused it. */
export type SupersedeCause = Pick<EventMetadata<'role_grant_offer_supersede'>, 'reason' | 'cause_id'>
export type Superseded = SupersedeCause & { offer: Offer }

/** Writes an audit row and notifies the grantor for each superseded offer, by ascending id. */
export function announceSuperseded(
  { audit, notify }: Pick<Work, 'audit' | 'notify'>,
  ended: readonly Superseded[],
  via: Via = {},
): void {
  const ordered = [...ended].sort((a, b) => (a.offer.offer_id < b.offer.offer_id ? -1 : 1))
  for (const { offer, reason, cause_id } of ordered) {
    audit(
      'role_grant_offer_supersede',
      { ...offerMetadata(offer), reason, cause_id, ...via },
      { target_account_id: offer.to_account_id, target_actor_id: offer.to_actor_id },
    )
    notify(offer.from_account_id, 'role_grant_offer_supersede', { offer, reason, cause_id })
  }
}

/** What every audit row about an offer says of it. */
export const offerMetadata = ({ offer_id, role, scope_kind, scope_id }: Offer) => ({
  offer_id,
  role,
  scope_kind,
  scope_id,
})

/**
 * Whether the grantor may offer the role. The consumer's callback decides, or by default the grantor's own grants.
 * The caller holds the account lock of the grantor.
 */
export async function mayOffer(app: App, question: OfferQuestion): Promise<boolean> {
  const { authorizeOffer } = app
  if (!authorizeOffer) return holds(question.grantor, question.role, question)
  try {
    return (await authorizeOffer(structuredClone(question))) === true
  } catch (cause) {
    // Nothing that the callback throws reaches the client, not even a refusal.
    throw new Error('The callback authorize_offer failed.', { cause })
  }
}

/** A global grant counts at every scope, a scoped one only at its own. */
const holds = ({ role_grants }: Grantor, role: string, { scope_kind, scope_id }: Scope): boolean =>
  role_grants.some(
    (grant) =>
      grant.role === role &&
      (grant.scope_id === null || (grant.scope_kind === scope_kind && grant.scope_id === scope_id)),
  )

/**
 * The live actors among these ids, with their active grants, as one JSON value. Read it after locking their accounts.
 */
export const liveAmong = (ids: readonly string[]): Sql => sql`coalesce((
    select json_agg(json_build_object('actor_id', actor.id, 'account_id', actor.account_id, 'role_grants', ${activeGrants}))
    from ${liveActors} where actor.id = ${anyOf(ids)}
  ), '[]'::json)`

export async function readLiveActors(db: Queryable, ids: readonly string[]): Promise<Map<string, Grantor>> {
  return byActor((await db.one<{ live: Grantor[] }>(sql`select ${liveAmong(ids)} as live`)).live)
}

export const byActor = (live: readonly Grantor[]): Map<string, Grantor> =>
  new Map(live.map((one) => [one.actor_id, one]))

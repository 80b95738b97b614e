import { z } from 'zod'
import { heldCredential, lockAccounts, scopeLock } from '../accounts/locks.ts'
import type { App } from '../core/app.ts'
import { mutation } from '../core/declare.ts'
import { committed, type Fail, type Work } from '../core/mutate.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import type { Grantor } from '../registry/hooks.ts'
import { auditConferred, type Conferral, conferring, type GrantInput } from '../roles/grants.ts'
import { activeGrantsWhere } from '../roles/revoke.ts'
import { Offer } from '../wire/offer.ts'
import { Uuid } from '../wire/types.ts'
import {
  announceSuperseded,
  byActor,
  liveAmong,
  mayOffer,
  offerColumns,
  offerMetadata,
  pendingTo,
  readLiveActors,
  refuseEnded,
  type StoredOffer,
  stampOffer,
  storedColumns,
} from './offers.ts'

const Accepted = z.object({
  role_grant_id: Uuid,
  offer: Offer,
  superseded_offer_ids: z.array(Uuid),
  created: z.boolean(),
})

export const role_grant_offer_accept = mutation({
  doc: 'Accept an offer to the caller’s account: the acting actor gets the role. Accepting again returns the same grant.',
  auth: { account: 'required', actor: 'required' },
  event: 'role_grant_offer_accept',
  input: z.strictObject({ offer_id: Uuid }),
  output: Accepted,
  errors: [
    'role_grant_offer_not_found',
    'account_vanished',
    'role_grant_offer_terminal',
    'role_grant_offer_expired',
    'role_grant_offer_actor_mismatch',
    'role_grant_offer_limit',
  ],
  async handler({ offer_id }, { app, account, actor, credential, db, audit, notify, fail }) {
    const asked = await readWithScopeLock(db, offer_id, account.id)
    if (!asked) throw fail('role_grant_offer_not_found')
    const { from_actor_id, from_account_id } = asked

    const [, { stored, siblings, live, isHeld }] = await Promise.all([
      lockAccounts(db, [account.id, from_account_id]),
      lockWithSiblings(db, asked, actor.id, heldCredential({ account, credential })),
    ])
    if (!live.has(actor.id)) throw fail('account_vanished')
    if (!stored) throw fail('role_grant_offer_not_found')
    if (!isHeld) throw refusal('authentication_required')

    if (stored.accepted_at !== null) return await acceptedBefore(db, stored, actor.id)
    refuseEnded(stored)
    if (stored.to_actor_id !== null && stored.to_actor_id !== actor.id)
      throw fail('role_grant_offer_actor_mismatch')
    if (!(await isAuthorised(app, stored, live.get(from_actor_id)))) {
      await supersedeUnauthorised({ db, audit, notify }, stored)
      throw committed(fail('role_grant_offer_terminal'))
    }

    const max = app.config.max_role_grants
    const { role_grants } = live.get(actor.id) as Grantor
    if (max !== null && role_grants.length >= max && !role_grants.some((held) => isOf(stored, held)))
      throw fail('role_grant_offer_limit', { limit: 'grants', max })

    const grant = {
      actor_id: actor.id,
      role: stored.role,
      scope_kind: stored.scope_kind,
      scope_id: stored.scope_id,
      expires_at: stored.grant_expires_at,
      granted_by: from_actor_id,
      source_offer_id: offer_id,
    }
    const { conferred, accepted, superseded } = await conferAndStamp(db, grant, offer_id, siblings, fail)
    const { role_grant_id, created } = conferred
    audit(
      'role_grant_offer_accept',
      { ...offerMetadata(accepted), role_grant_id },
      { target_actor_id: actor.id, target_account_id: account.id },
    )
    auditConferred(audit, { ...grant, account_id: account.id }, conferred, {
      source: 'offer',
      source_offer_id: offer_id,
    })
    notify(from_account_id, 'role_grant_offer_accepted', { offer: accepted })
    const cause = { reason: 'sibling_accepted' as const, cause_id: offer_id }
    announceSuperseded(
      { audit, notify },
      superseded.map((offer) => ({ offer, ...cause })),
    )
    return { role_grant_id, offer: accepted, superseded_offer_ids: siblings, created }
  },
})

/** Whether a grant is of the same role and scope as an offer, which can then only extend it. */
const isOf = (
  { role, scope_kind, scope_id }: Offer,
  held: Pick<Offer, 'role' | 'scope_kind' | 'scope_id'>,
): boolean => held.role === role && held.scope_kind === scope_kind && held.scope_id === scope_id

/** Reads the columns of an offer to the account that never change, and takes the scope lock before any other lock. */
async function readWithScopeLock(
  db: Queryable,
  offer_id: string,
  account_id: string,
): Promise<Offer | undefined> {
  const row = await db.first<Offer & { lock: unknown }>(sql`
    select ${offerColumns},
      case when o.scope_id is not null then ${scopeLock(sql`o.scope_kind`, sql`o.scope_id`)}::text end as lock
    from role_grant_offer o where o.offer_id = ${offer_id}::uuid and o.to_account_id = ${account_id}::uuid`)
  if (!row) return undefined
  const { lock: _, ...offer } = row
  return offer
}

/**
 * Locks the offer and its siblings for the actor, in one statement and by ascending id. No sibling can be added
 * afterwards, because making an offer takes the lock of the recipient's account. Holds the credential, and reads both
 * actors: what it reads of them changes only under their account locks, which the caller holds, unless a grant expires
 * during a wait for a sibling.
 */
async function lockWithSiblings(
  db: Queryable,
  { offer_id, to_account_id, role, scope_kind, scope_id, from_actor_id }: Offer,
  actor_id: string,
  held: Sql,
): Promise<{
  stored: StoredOffer | undefined
  siblings: string[]
  live: Map<string, Grantor>
  isHeld: boolean
}> {
  const ids = [actor_id, from_actor_id]
  const found = await db.rows<StoredOffer & { live: Grantor[]; is_held: boolean }>(sql`
    select ${storedColumns}, ${liveAmong(ids)} as live, ${held} as is_held from role_grant_offer o
    where o.offer_id = ${offer_id}::uuid or (${pendingTo(sql`${to_account_id}::uuid`)} and o.role = ${role}
      and o.scope_kind is not distinct from ${scope_kind} and o.scope_id is not distinct from ${scope_id}::uuid
      and (o.to_actor_id is null or o.to_actor_id = ${actor_id}::uuid))
    order by o.offer_id for update`)
  const rows = found.map(({ live: _, is_held: __, ...offer }) => offer)
  const live = found[0]?.live
  const mayExpire = live?.some(({ role_grants }) => role_grants.some(({ expires_at }) => expires_at !== null))
  return {
    stored: rows.find((row) => row.offer_id === offer_id),
    siblings: rows.map((row) => row.offer_id).filter((id) => id !== offer_id),
    isHeld: found[0]?.is_held === true,
    live: live && !mayExpire ? byActor(live) : await readLiveActors(db, ids),
  }
}

/** The result of accepting again: the same grant, as long as the same actor still has it. */
async function acceptedBefore(
  db: Queryable,
  { is_expired: _, ...offer }: StoredOffer,
  actor_id: string,
): Promise<z.output<typeof Accepted>> {
  const role_grant_id = offer.resulting_role_grant_id
  const [grant] = await activeGrantsWhere(
    db,
    sql`g.id = ${role_grant_id}::uuid and g.actor_id = ${actor_id}::uuid`,
  )
  if (!grant) throw refusal('role_grant_offer_terminal')
  return { role_grant_id: grant.id, offer, superseded_offer_ids: [], created: false }
}

/** Whether the role can still be offered, and by this grantor. */
async function isAuthorised(app: App, offer: StoredOffer, grantor: Grantor | undefined): Promise<boolean> {
  const { role, to_account_id, to_actor_id, scope_kind, scope_id, message, grant_expires_at } = offer
  const spec = app.registry.role(role)
  if (!grantor || !spec?.grant_paths.includes('admin')) return false
  // The declarations may have changed since the offer was made.
  if (scope_kind !== null && !app.registry.scopeKindsOf(spec).includes(scope_kind)) return false
  return await mayOffer(app, {
    phase: 'accept',
    grantor,
    to_account_id,
    to_actor_id,
    role,
    scope_kind,
    scope_id,
    message,
    grant_expires_at,
  })
}

/** Supersedes an offer whose grantor may no longer make it. This is committed although the call is refused. */
async function supersedeUnauthorised(
  work: Pick<Work, 'db' | 'audit' | 'notify'>,
  { offer_id }: StoredOffer,
): Promise<void> {
  const offer = await stampOffer(work.db, offer_id, sql`superseded_at = now()`)
  announceSuperseded(work, [{ offer, reason: 'grantor_lost_authority', cause_id: null }])
}

/**
 * Confers the role, stamps the offer as accepted and its siblings as superseded. All of them are locked. Refuses an
 * offer that lapsed while waiting for a lock: its grant might have ended too.
 */
async function conferAndStamp(
  db: Queryable,
  grant: GrantInput,
  offer_id: string,
  siblings: readonly string[],
  fail: Fail<'role_grant_offer_expired'>,
): Promise<{ conferred: Conferral; accepted: Offer; superseded: Offer[] }> {
  const isAccepted = sql`o.offer_id = ${offer_id}::uuid`
  const rows = await db.rows<StoredOffer & { conferred: Conferral }>(sql`
    with ${conferring(grant)}, stamped as (
      update role_grant_offer o set
        accepted_at = case when ${isAccepted} then now() end,
        resulting_role_grant_id = case when ${isAccepted} then (select role_grant_id from conferred) end,
        superseded_at = case when not ${isAccepted} then now() end
      where o.offer_id = any(${[offer_id, ...siblings]}::uuid[])
      returning ${storedColumns}
    )
    select o.*, json_build_object('role_grant_id', c.role_grant_id, 'created', c.created, 'extended', c.extended,
      'expires_at', iso_timestamp(c.expires_at)) as conferred
    from stamped o, conferred c`)
  const found = rows.find((row) => row.offer_id === offer_id) as (typeof rows)[0]
  if (found.is_expired) throw fail('role_grant_offer_expired')
  const offers = rows.map(({ conferred: _, is_expired: __, ...offer }) => offer)
  return {
    conferred: found.conferred,
    accepted: offers.find((offer) => offer.offer_id === offer_id) as Offer,
    superseded: offers.filter((offer) => offer.offer_id !== offer_id),
  }
}

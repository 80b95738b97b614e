import { z } from 'zod'
import { holdCredential, lockAccounts, lockScope } from '../accounts/locks.ts'
import { requireAhead } from '../core/ahead.ts'
import { mutation } from '../core/declare.ts'
import { recorded } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import type { Reason } from '../reasons.ts'
import { attempted } from '../roles/grants.ts'
import { checkScope, RoleName, refuseDestroyed, ScopeKind } from '../roles/scope.ts'
import { Offer } from '../wire/offer.ts'
import { Int, OrNull, Text, Timestamp, Uuid } from '../wire/types.ts'
import { mayOffer, offerColumns, offerMetadata, pendingFrom, readLiveActors, unstamped } from './offers.ts'

const daysDefault = 30

export const role_grant_offer_create = mutation({
  doc: 'Offer a role to an account; it takes effect when the offer is accepted. The same offer again refreshes the pending one.',
  auth: { account: 'required', actor: 'required' },
  event: 'role_grant_offer_create',
  rate_limit: 'account',
  rate_limit_group: 'role_write',
  input: z.strictObject({
    to_account_id: Uuid,
    to_actor_id: OrNull(Uuid),
    role: RoleName,
    scope_kind: OrNull(ScopeKind),
    scope_id: OrNull(Uuid),
    message: OrNull(Text(500)),
    expires_in_days: OrNull(Int(1, 365)).describe(`${daysDefault} if left out.`),
    grant_expires_at: OrNull(Timestamp),
  }),
  output: z.object({ offer: Offer }),
  errors: [
    'role_grant_offer_role_not_grantable',
    'role_grant_builtin_scoped',
    'role_grant_scope_not_applicable',
    'account_vanished',
    'role_grant_offer_not_authorized',
    'role_grant_offer_self_target',
    'account_not_found',
    'role_grant_offer_actor_account_mismatch',
    'role_grant_scope_destroyed',
    'role_grant_offer_limit',
  ],
  refine(input, { app }) {
    const wanted = {
      to_account_id: input.to_account_id,
      to_actor_id: input.to_actor_id ?? null,
      role: input.role,
      scope_kind: input.scope_kind ?? null,
      scope_id: input.scope_id ?? null,
      message: input.message ?? null,
      grant_expires_at: input.grant_expires_at ?? null,
    }
    const { assertApplicable } = checkScope(app.registry, wanted)
    return { wanted, assertApplicable, days: input.expires_in_days ?? daysDefault }
  },
  async handler(
    { wanted, assertApplicable, days },
    { app, account, actor, credential, db, audit, notify, fail },
  ) {
    const { to_account_id, to_actor_id } = wanted
    await requireAhead(db, 'grant_expires_at', wanted.grant_expires_at)
    const spec = app.registry.role(wanted.role)
    const refuse = (reason: Recorded) =>
      recorded('role_grant_offer_create', refusal(reason), { reason, ...attempted(wanted, spec) })
    if (!spec?.grant_paths.includes('admin')) throw refuse('role_grant_offer_role_not_grantable')
    assertApplicable(spec)

    await lockScope(db, wanted)
    const made = { ...wanted, from_actor_id: actor.id, from_account_id: account.id }
    const max = app.config.max_pending_offers
    const [accounts, live, isHeld, isFull] = await Promise.all([
      lockAccounts(db, [account.id, to_account_id]),
      readLiveActors(db, to_actor_id === null ? [actor.id] : [actor.id, to_actor_id]),
      holdCredential(db, { account, credential }),
      max !== null && isOneTooMany(db, made, max),
    ])
    const grantor = live.get(actor.id)
    if (!grantor) throw fail('account_vanished')
    if (!isHeld) throw refusal('authentication_required')
    if (!(await mayOffer(app, { phase: 'create', grantor, ...wanted })))
      throw refuse('role_grant_offer_not_authorized')
    if (to_account_id === account.id) throw refuse('role_grant_offer_self_target')
    const recipient = accounts.get(to_account_id)
    if (!recipient || recipient.deleted_at !== null) throw fail('account_not_found')
    if (to_actor_id !== null && live.get(to_actor_id)?.account_id !== to_account_id)
      throw refuse('role_grant_offer_actor_account_mismatch')
    await refuseDestroyed(db, wanted)
    await requireAhead(db, 'grant_expires_at', wanted.grant_expires_at)

    if (isFull) throw fail('role_grant_offer_limit', { limit: 'offers', max })
    const [lapsed, { updated, ...offer }] = await Promise.all([
      expireLapsed(db, made),
      upsertOffer(db, made, days),
    ])
    if (lapsed)
      audit('role_grant_offer_expire', offerMetadata(lapsed), {
        target_account_id: to_account_id,
        target_actor_id: to_actor_id,
        ip: null,
      })
    audit(
      'role_grant_offer_create',
      { ...offerMetadata(offer), to_account_id, updated },
      { target_account_id: to_account_id, target_actor_id: to_actor_id },
    )
    notify(to_account_id, 'role_grant_offer_received', { offer })
    return { offer }
  },
})

type Wanted = Pick<
  Offer,
  'to_account_id' | 'to_actor_id' | 'role' | 'scope_kind' | 'scope_id' | 'message' | 'grant_expires_at'
>
type Made = Wanted & Pick<Offer, 'from_actor_id' | 'from_account_id'>

/** Refused with a failure row. */
type Recorded = Extract<
  Reason,
  | 'role_grant_offer_role_not_grantable'
  | 'role_grant_offer_not_authorized'
  | 'role_grant_offer_self_target'
  | 'role_grant_offer_actor_account_mismatch'
>

/** The condition of the unique index: no offer is without a role. */
const open = sql`${unstamped} and role <> ''`

/** The unstamped offer from the same actor to the same recipient, of the same role and scope. At most one exists. */
const keyOf = ({ to_account_id, to_actor_id, role, scope_kind, scope_id, from_actor_id }: Made) => sql`
  to_account_id = ${to_account_id}::uuid and to_actor_id is not distinct from ${to_actor_id}::uuid
  and role = ${role} and scope_kind is not distinct from ${scope_kind}
  and scope_id is not distinct from ${scope_id}::uuid and from_actor_id = ${from_actor_id}::uuid and ${open}`

/**
 * Whether the actor already has `max` pending offers and this would add one. Losing its authority ends all of them at
 * once, so there must not be too many.
 */
const isOneTooMany = async (db: Queryable, made: Made, max: number): Promise<boolean> =>
  (await db.first(sql`
    select from role_grant_offer o where ${pendingFrom(sql`${made.from_actor_id}::uuid`)}
      and not exists (select from role_grant_offer o where ${keyOf(made)} and o.expires_at > statement_timestamp())
    offset ${sql.raw(max - 1)} limit 1`)) !== undefined

/** Stamps a lapsed offer to make room for a new one. The mutation audits it, so a broken audit log does not stop it. */
const expireLapsed = (db: Queryable, made: Made): Promise<Offer | undefined> =>
  db.first<Offer>(sql`
    update role_grant_offer o set expired_at = now() where ${keyOf(made)} and expires_at <= statement_timestamp()
    returning ${offerColumns}`)

function upsertOffer(db: Queryable, made: Made, days: number): Promise<Offer & { updated: boolean }> {
  const { from_actor_id, from_account_id, to_account_id, to_actor_id, role, scope_kind, scope_id } = made
  // On conflict PostgreSQL locks the existing row first, which sets its xmax.
  return db.one<Offer & { updated: boolean }>(sql`
    insert into role_grant_offer as o (from_actor_id, from_account_id, to_account_id, to_actor_id, role,
      scope_kind, scope_id, message, grant_expires_at, expires_at)
    values (${from_actor_id}::uuid, ${from_account_id}::uuid, ${to_account_id}::uuid, ${to_actor_id}::uuid,
      ${role}, ${scope_kind}, ${scope_id}::uuid, ${made.message}, ${made.grant_expires_at}::timestamptz,
      least(now() + make_interval(days => ${days}::int), ${made.grant_expires_at}::timestamptz))
    on conflict (to_account_id, to_actor_id, role, scope_kind, scope_id, from_actor_id) where ${open}
    do update set message = excluded.message, grant_expires_at = excluded.grant_expires_at,
      expires_at = excluded.expires_at
    returning ${offerColumns}, o.xmax <> 0 as updated`)
}

import { z } from 'zod'
import { lockAccounts, lockScope } from '../accounts/locks.ts'
import { unendedGrant } from '../auth/active-grant.ts'
import { onlyVia } from '../core/operate.ts'
import { operation } from '../core/operation.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { announceSuperseded, pending, supersedeWhere } from '../offers/offers.ts'
import type { Offer } from '../wire/offer.ts'
import { Text, Uuid } from '../wire/types.ts'
import { type RevokedGrant, toRevoked } from './operator.ts'
import { activeGrantsWhere, stampRevoked } from './revoke.ts'
import { checkScope, type Scope, ScopeKind } from './scope.ts'

/** Both lists are empty when the scope was destroyed already. */
export type DestroyedScope = { revoked: RevokedGrant[]; superseded_offers: Offer[] }

/**
 * Afterwards no grant or offer can be made at the scope. Call it `within` the transaction that deletes the
 * consumer's own row. To destroy several scopes in one transaction, always use the same order.
 */
export const destroyScope = operation({
  doc: 'End every grant and offer in a scope, and allow no new ones.',
  input: z.strictObject({ scope_kind: ScopeKind, scope_id: Uuid, reason: Text(500).nullish() }),
  event: 'role_grant_revoke',
  refine({ reason = null, ...scope }, { app }) {
    checkScope(app.registry, scope)
    return { reason, scope }
  },
  async handler({ reason, scope }, work): Promise<DestroyedScope> {
    const { db, detail, by: revoked_by } = work
    await lockScope(db, scope, 'exclusive')
    await lockAccountsAt(db, scope)
    const grants = await activeGrantsWhere(db, at(sql`g`, scope))
    const revocation = { cause: 'scope_destroyed', revoked_by, reason, ...onlyVia(detail) } as const
    if (grants.length > 0) await stampRevoked(work, grants, revocation)
    const superseded = await supersedeWhere(db, sql`${at(sql`o`, scope)} and ${pending}`)
    await db.run(sql`
      insert into role_scope_destroyed (scope_kind, scope_id)
      values (${scope.scope_kind}, ${scope.scope_id}::uuid) on conflict do nothing`)
    const cause = { reason: 'scope_destroyed' as const, cause_id: scope.scope_id }
    announceSuperseded(
      work,
      superseded.map((offer) => ({ offer, ...cause })),
      onlyVia(detail),
    )
    return { revoked: grants.map(toRevoked), superseded_offers: superseded.sort(byId) }
  },
})

/** Locks every account that has a grant or a pending offer at the scope. The scope lock keeps others from joining. */
async function lockAccountsAt(db: Queryable, scope: Scope): Promise<void> {
  const concerned = await db.rows<{ account_id: string }>(sql`
    select actor.account_id from role_grant g join actor on actor.id = g.actor_id
    where ${at(sql`g`, scope)} and ${unendedGrant}
    union select o.to_account_id from role_grant_offer o where ${at(sql`o`, scope)} and ${pending}`)
  await lockAccounts(
    db,
    concerned.map(({ account_id }) => account_id),
  )
}

const at = (row: Sql, { scope_kind, scope_id }: Scope): Sql =>
  sql`${row}.scope_kind = ${scope_kind} and ${row}.scope_id = ${scope_id}::uuid`

const byId = (a: Offer, b: Offer): number => (a.offer_id < b.offer_id ? -1 : 1)

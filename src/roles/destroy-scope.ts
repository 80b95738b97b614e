import { z } from 'zod'
import { onlyVia } from '../accounts/ending.ts'
import { lockAccounts } from '../accounts/locks.ts'
import { unendedGrant } from '../auth/active-grant.ts'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { type Operator, operate } from '../core/operate.ts'
import { Text, Uuid } from '../core/wire.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { announceSuperseded, type Offer, pending, supersedeWhere } from '../offers/offers.ts'
import { type RevokedGrant, toRevoked } from './operations.ts'
import { activeGrantsWhere, stampRevoked } from './revoke.ts'
import { checkScope, lockScope, type Scope, ScopeKind } from './scope.ts'

const Input = z.strictObject({
  scope_kind: ScopeKind,
  scope_id: Uuid,
  reason: Text(500).nullish(),
})

/** A repeat has empty lists. */
export type DestroyedScope = { revoked: RevokedGrant[]; superseded_offers: Offer[] }

/**
 * Ends everything at a scope of the consumer's, and for good: no grant and no offer at it can arise any more
 * (contract 3, section 6.2). Call it `within` the transaction that removes the consumer's own row. Several
 * scopes in one transaction: always in the same order.
 */
export async function destroyScope(
  app: App,
  input: z.input<typeof Input>,
  operator: Operator,
): Promise<DestroyedScope> {
  const { reason = null, ...scope } = parseInput(Input, input)
  checkScope(app.registry, scope)
  return await operate(app, 'role_grant_revoke', operator, async (work) => {
    const { db, detail } = work
    await lockScope(db, scope, 'exclusive')
    await lockAccountsAt(db, scope)
    const grants = await activeGrantsWhere(db, at(sql`g`, scope))
    if (grants.length > 0)
      await stampRevoked(work, grants, {
        cause: 'scope_destroyed',
        revoked_by: operator.actor_id ?? null,
        reason,
        ...onlyVia(detail),
      })
    const superseded = await supersedeWhere(db, at(sql`o`, scope))
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
  })
}

/** Whoever holds a grant at the scope or is offered one; under the scope lock nobody joins them. */
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

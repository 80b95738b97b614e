import { z } from 'zod'
import { onlyVia } from '../accounts/ending.ts'
import { endsAuthority, lockAccounts, takeGuardLock } from '../accounts/locks.ts'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { recorded } from '../core/mutate.ts'
import { type Operator, operate } from '../core/operate.ts'
import { Text, Timestamp, Uuid } from '../core/wire.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { type Conferred, conferGrant } from './grants.ts'
import { activeGrantsWhere, endGrant } from './revoke.ts'
import { checkScope, RoleName, ScopeKind } from './scope.ts'

/**
 * Grants by operator commands and library calls (contract 3, section 6.1). `keeper` is refused by all of
 * them with `role_grant_path_not_allowed`: only bootstrap, `createAccount` and `transferKeeper` move it.
 */

const GrantRoleInput = z.strictObject({
  actor_id: Uuid,
  role: RoleName,
  scope_kind: ScopeKind.nullish(),
  scope_id: Uuid.nullish(),
  expires_at: Timestamp.refine((at) => Date.parse(at) > Date.now(), {
    params: { code: 'too_small' },
  }).nullish(),
  /** The way of conferring; the role must list it. */
  path: RoleName,
  granted_by: Uuid.nullish(),
})

/**
 * Confers a role on a live actor; an active grant of the same tuple keeps its id and may only be prolonged.
 * Refuses with `role_grant_path_not_allowed`, `role_grant_builtin_scoped`, `role_grant_scope_not_applicable`,
 * `actor_not_found`.
 */
export async function grantRole(
  app: App,
  input: z.input<typeof GrantRoleInput>,
  operator: Operator,
): Promise<Conferred> {
  const { path, scope_kind = null, scope_id = null, ...grant } = parseInput(GrantRoleInput, input)
  const spec = app.registry.role(grant.role)
  const scope = checkScope(app.registry, { scope_kind, scope_id })
  if (!spec || spec.name === 'keeper' || !spec.grant_paths.includes(path))
    throw refusal('role_grant_path_not_allowed')
  scope.mustSuit(spec)
  return await operate(app, 'role_grant_create', operator, async ({ db, audit, detail }) => {
    const source = { source: 'library' as const, path, ...onlyVia(detail) }
    return await conferGrant(db, audit, { ...grant, scope_kind, scope_id }, source)
  })
}

const RevokeRoleInput = z.strictObject({
  actor_id: Uuid,
  role_grant_id: Uuid,
  reason: Text(500).nullish(),
})

/**
 * Ends an active grant, also one of a removed actor or deleted account. Refuses with `role_grant_not_found`,
 * `role_grant_path_not_allowed` (keeper), `cannot_revoke_last_admin`.
 */
export async function revokeRole(
  app: App,
  input: z.input<typeof RevokeRoleInput>,
  operator: Operator,
): Promise<void> {
  const { actor_id, role_grant_id, reason = null } = parseInput(RevokeRoleInput, input)
  await operate(app, 'role_grant_revoke', operator, async ({ db, audit, detail }) => {
    const owner = await db.first<{ account_id: string }>(sql`
      select account_id from actor where id = ${actor_id}::uuid`)
    if (!owner) throw refusal('role_grant_not_found')
    await lockAccounts(db, [owner.account_id])
    const [grant] = await activeGrantsWhere(
      db,
      sql`g.id = ${role_grant_id}::uuid and g.actor_id = ${actor_id}::uuid`,
    )
    if (!grant) throw refusal('role_grant_not_found')
    const { role } = grant
    const refuse = (why: 'role_grant_path_not_allowed' | 'cannot_revoke_last_admin') =>
      recorded(
        'role_grant_revoke',
        refusal(why),
        { reason: why, role, role_grant_id, ...onlyVia(detail) },
        { target_actor_id: actor_id, target_account_id: grant.account_id },
      )
    if (role === 'keeper') throw refuse('role_grant_path_not_allowed')
    if (role === 'admin' && grant.scope_id === null) {
      await takeGuardLock(db)
      const { lastAdmin } = await endsAuthority(db, { role_grant_id })
      if (lastAdmin) throw refuse('cannot_revoke_last_admin')
    }
    await endGrant(db, audit, grant, {
      cause: 'library',
      revoked_by: operator.actor_id ?? null,
      reason,
      judgesOffers: app.offerPolicy === 'holders',
      ...onlyVia(detail),
    })
  })
}

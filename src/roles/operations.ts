import { z } from 'zod'
import { onlyVia } from '../accounts/ending.ts'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { recorded } from '../core/mutate.ts'
import { type Operating, type Operator, operate } from '../core/operate.ts'
import { Text, Uuid } from '../core/wire.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { type Conferred, conferGrant, GrantExpiry } from './grants.ts'
import { type ActiveGrant, endGrants, lastAdminAmong, lockActiveGrants } from './revoke.ts'
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
  expires_at: GrantExpiry.nullish(),
  /** The way of conferring; the role must list it. */
  path: RoleName,
  granted_by: Uuid.nullish(),
})

/**
 * Confers a role on a live actor; an active grant of the same tuple keeps its id and may only be prolonged.
 * Refuses with `role_grant_path_not_allowed`, `role_grant_builtin_scoped`, `role_grant_scope_not_applicable`,
 * `actor_not_found`, `role_grant_scope_destroyed`.
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
 * Ends an active grant, also one of a removed actor or deleted account, with the offers that depend on it.
 * Refuses with `role_grant_not_found`, `role_grant_path_not_allowed` (keeper), `cannot_revoke_last_admin`.
 */
export async function revokeRole(
  app: App,
  input: z.input<typeof RevokeRoleInput>,
  operator: Operator,
): Promise<void> {
  const { actor_id, role_grant_id, reason = null } = parseInput(RevokeRoleInput, input)
  await operate(app, 'role_grant_revoke', operator, async (work) => {
    const [grant] = await lockActiveGrants(work.db, actor_id, sql`g.id = ${role_grant_id}::uuid`)
    if (!grant) throw refusal('role_grant_not_found')
    if (grant.role === 'keeper') throw refused(work, grant, 'role_grant_path_not_allowed')
    await endByLibrary(app, work, [grant], { operator, reason })
  })
}

const RevokeEverywhereInput = z.strictObject({
  actor_id: Uuid,
  role: RoleName,
  reason: Text(500).nullish(),
})

/** A grant that a library call ended. */
export type RevokedGrant = {
  role_grant_id: string
  role: string
  scope_kind: string | null
  scope_id: string | null
  actor_id: string
  account_id: string
}

/**
 * Ends every active grant of a role on an actor, global and at all scopes; none: an empty list. Refuses with
 * `role_grant_path_not_allowed` (keeper), `cannot_revoke_last_admin`.
 */
export async function revokeRoleEverywhere(
  app: App,
  input: z.input<typeof RevokeEverywhereInput>,
  operator: Operator,
): Promise<{ revoked: RevokedGrant[] }> {
  const { actor_id, role, reason = null } = parseInput(RevokeEverywhereInput, input)
  if (role === 'keeper') throw refusal('role_grant_path_not_allowed')
  return await operate(app, 'role_grant_revoke', operator, async (work) => {
    const grants = await lockActiveGrants(work.db, actor_id, sql`g.role = ${role}`)
    await endByLibrary(app, work, grants, { operator, reason })
    return { revoked: grants.map(toRevoked) }
  })
}

export const toRevoked = ({ id, role, scope_kind, scope_id, actor_id, account_id }: ActiveGrant) => ({
  role_grant_id: id,
  role,
  scope_kind,
  scope_id,
  actor_id,
  account_id,
})

async function endByLibrary(
  app: App,
  work: Operating,
  grants: readonly ActiveGrant[],
  { operator, reason }: { operator: Operator; reason: string | null },
): Promise<void> {
  const last = await lastAdminAmong(work.db, grants)
  if (last) throw refused(work, last, 'cannot_revoke_last_admin')
  await endGrants(app, work, grants, {
    cause: 'library',
    revoked_by: operator.actor_id ?? null,
    reason,
    ...onlyVia(work.detail),
  })
}

const refused = (
  { detail }: Operating,
  { id: role_grant_id, role, actor_id, account_id }: ActiveGrant,
  reason: 'role_grant_path_not_allowed' | 'cannot_revoke_last_admin',
) =>
  recorded(
    'role_grant_revoke',
    refusal(reason),
    { reason, role, role_grant_id, ...onlyVia(detail) },
    { target_actor_id: actor_id, target_account_id: account_id },
  )

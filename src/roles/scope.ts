import { z } from 'zod'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { type Registry, type RoleSpec, builtinRoles as specs } from '../registry/registry.ts'
import { issue } from '../wire/issues.ts'
import { worded } from '../wire/rules.ts'

/** A role, a grant path or a scope kind, as input: up to 64 lower-case letters and inner underscores. */
export const RoleName = z
  .string()
  .max(64)
  .regex(worded(/^[a-z]([a-z_]*[a-z])?$/, 'Letters a to z with inner underscores are accepted.'))
export const ScopeKind = RoleName

/** Both null: global. */
export type Scope = { scope_kind: string | null; scope_id: string | null }

const pair = 'Give `scope_kind` and `scope_id` together, or neither for everywhere.'

/** The names of the roles that every service has. They are held globally only, and the bootstrap confers both. */
export const builtinRoles: readonly string[] = specs.map(({ name }) => name)

/**
 * Refuses a scope that is incomplete or of an unknown kind as invalid input, at once. Call `assertApplicable`
 * later, when the role is known to be conferrable: it refuses a scope at which the role cannot be held.
 */
export function checkScope(
  registry: Registry,
  { scope_kind, scope_id }: Scope,
): { assertApplicable(role: RoleSpec): void } {
  const refuse = (key: keyof Scope, code: 'invalid_type' | 'unknown_scope_kind', rule?: string) =>
    refusal('invalid_params', { issues: [issue([key], code, rule)] })
  if (scope_kind !== null && scope_id === null) throw refuse('scope_id', 'invalid_type', pair)
  if (scope_kind === null && scope_id !== null) throw refuse('scope_kind', 'invalid_type', pair)
  if (scope_kind !== null && !registry.isScopeKind(scope_kind))
    throw refuse('scope_kind', 'unknown_scope_kind')
  return {
    assertApplicable: ({ name, applicable_scope_kinds }) => {
      if (scope_kind === null) return
      if (builtinRoles.includes(name)) throw refusal('role_grant_builtin_scoped')
      if (applicable_scope_kinds && !applicable_scope_kinds.includes(scope_kind))
        throw refusal('role_grant_scope_not_applicable')
    },
  }
}

/** Refuses a scope that was destroyed. The caller holds the scope lock. */
export async function refuseDestroyed(db: Queryable, { scope_kind, scope_id }: Scope): Promise<void> {
  if (scope_id === null) return
  const destroyed = await db.first(sql`
    select 1 from role_scope_destroyed where scope_kind = ${scope_kind} and scope_id = ${scope_id}::uuid`)
  if (destroyed) throw refusal('role_grant_scope_destroyed')
}

import { z } from 'zod'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import type { Registry, RoleSpec } from '../registry/registry.ts'
import { issue } from '../wire/issues.ts'

/** A Name of contract 3, section 0, as input: a role, a grant path or a scope kind. */
export const RoleName = z
  .string()
  .max(64)
  .regex(/^[a-z]([a-z_]*[a-z])?$/)
export const ScopeKind = RoleName

/** Both null: global. */
export type Scope = { scope_kind: string | null; scope_id: string | null }

const builtin = ['keeper', 'admin']

/**
 * The scope input rule (contract 3, section 1): its first row, which belongs to the schema, at once, and
 * the rest by `mustSuit`, once the role is known to be conferrable.
 */
export function checkScope(
  registry: Registry,
  { scope_kind, scope_id }: Scope,
): { mustSuit(role: RoleSpec): void } {
  const refuse = (key: keyof Scope, code: 'invalid_type' | 'unknown_scope_kind') =>
    refusal('invalid_params', { issues: [issue([key], code)] })
  if (scope_kind !== null && scope_id === null) throw refuse('scope_id', 'invalid_type')
  if (scope_kind === null && scope_id !== null) throw refuse('scope_kind', 'invalid_type')
  if (scope_kind !== null && !registry.isScopeKind(scope_kind))
    throw refuse('scope_kind', 'unknown_scope_kind')
  return {
    mustSuit: ({ name, applicable_scope_kinds }) => {
      if (scope_kind === null) return
      if (builtin.includes(name)) throw refusal('role_grant_builtin_scoped')
      if (applicable_scope_kinds && !applicable_scope_kinds.includes(scope_kind))
        throw refusal('role_grant_scope_not_applicable')
    },
  }
}

/**
 * The scope lock (contract 3, section 7.1, lock 2), before any account lock: shared by whatever makes grants
 * and offers at it, so that its destruction meets all of them or comes before them.
 */
export async function lockScope(
  db: Queryable,
  { scope_kind, scope_id }: Scope,
  mode: 'shared' | 'exclusive' = 'shared',
): Promise<void> {
  if (scope_id === null) return
  await db.run(sql`select ${scopeLock(sql`${scope_kind}::text`, sql`${scope_id}::text`, mode)}`)
}

/** The lock as an expression, for a statement that reads which scope it is. */
export const scopeLock = (kind: Sql, id: Sql, mode: 'shared' | 'exclusive' = 'shared'): Sql => {
  const lock = sql.raw(mode === 'shared' ? 'pg_advisory_xact_lock_shared' : 'pg_advisory_xact_lock')
  return sql`${lock}(hashtextextended('cellkeep scope ' || ${kind} || ' ' || ${id}, 0))`
}

/** Under the scope lock: nothing arises any more at a scope that was destroyed. */
export async function refuseDestroyed(db: Queryable, { scope_kind, scope_id }: Scope): Promise<void> {
  if (scope_id === null) return
  const destroyed = await db.first(sql`
    select 1 from role_scope_destroyed where scope_kind = ${scope_kind} and scope_id = ${scope_id}::uuid`)
  if (destroyed) throw refusal('role_grant_scope_destroyed')
}

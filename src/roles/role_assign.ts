import { z } from 'zod'
import { requireAhead } from '../core/ahead.ts'
import { onlyVia } from '../core/operate.ts'
import { actor, operation } from '../core/operation.ts'
import { meant } from '../wire/closest.ts'
import { issue } from '../wire/issues.ts'
import { Timestamp, Uuid } from '../wire/types.ts'
import { conferGrant } from './grants.ts'
import { checkScope, RoleName, ScopeKind } from './scope.ts'

/** If the actor has an active grant of the same role and scope, that one keeps its id and can only be extended. */
export const grantRole = operation({
  doc: 'Give a role to an actor, globally or in a scope, for good or until a time.',
  input: z.strictObject({
    actor_id: Uuid,
    role: RoleName,
    scope_kind: ScopeKind.nullish(),
    scope_id: Uuid.nullish(),
    expires_at: Timestamp.nullish(),
    /** The grant path; the role must list it. */
    path: RoleName,
    granted_by: Uuid.nullish(),
  }),
  event: 'role_grant_create',
  errors: [
    'role_grant_path_not_allowed',
    'role_grant_builtin_scoped',
    'role_grant_scope_not_applicable',
    'actor_not_found',
    'role_grant_scope_destroyed',
  ],
  refine({ scope_kind = null, scope_id = null, path, ...grant }, { app, fail }) {
    const spec = app.registry.role(grant.role)
    const scope = checkScope(app.registry, { scope_kind, scope_id })
    if (!spec) {
      const message = `There is no such role${meant(grant.role, app.registry.grantable, '.')}`
      throw fail('role_grant_path_not_allowed', { issues: [issue(['role'], 'invalid_value', message)] })
    }
    // Only the bootstrap, `createAccount` and `transferKeeper` make a keeper.
    if (spec.name === 'keeper' || !spec.grant_paths.includes(path)) throw fail('role_grant_path_not_allowed')
    scope.assertApplicable(spec)
    return { path, grant: { ...grant, scope_kind, scope_id } }
  },
  async handler({ path, grant }, { db, audit, detail }) {
    const { expires_at } = grant
    await requireAhead(db, 'expires_at', expires_at)
    const conferred = await conferGrant(db, audit, grant, { source: 'library', path, ...onlyVia(detail) })
    await requireAhead(db, 'expires_at', expires_at)
    return conferred
  },
  command: {
    name: 'role assign',
    args: {
      actor_id: actor,
      role: 'ROLE',
      scope_kind: '--scope-kind KIND',
      scope_id: '--scope-id ID',
      expires_at: '--expires-at TIME',
      path: { fixed: 'admin' },
    },
    details:
      'A role that the actor already holds can only be extended. The role must have the grant path `admin`. TIME\nlooks like 2030-01-31T12:00:00Z.',
    phrase: ({ created, expires_at }, { who, role }) =>
      `${who} ${created ? 'is now' : 'already was'} ${role}${expires_at === null ? '' : ` until ${expires_at}`}.`,
  },
})

import { z } from 'zod'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Text, Uuid } from '../wire/types.ts'
import { endByOperator, type RevokedGrant, toRevoked } from './operator.ts'
import { lockActiveGrants } from './revoke.ts'
import { RoleName } from './scope.ts'

/** Returns an empty list if the actor has no such grant. */
export const revokeRoleEverywhere = operation({
  doc: 'End every active grant of a role to an actor, global and at all scopes.',
  input: z.strictObject({ actor_id: Uuid, role: RoleName, reason: Text(500).nullish() }),
  event: 'role_grant_revoke',
  errors: ['role_grant_path_not_allowed', 'cannot_revoke_last_admin'],
  refine(input, { fail }) {
    if (input.role === 'keeper') throw fail('role_grant_path_not_allowed')
    return input
  },
  async handler({ actor_id, role, reason = null }, { app, ...work }): Promise<{ revoked: RevokedGrant[] }> {
    const grants = await lockActiveGrants(work.db, actor_id, sql`g.role = ${role}`)
    await endByOperator(app, work, grants, reason)
    return { revoked: grants.map(toRevoked) }
  },
})

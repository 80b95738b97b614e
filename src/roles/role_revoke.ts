import { z } from 'zod'
import { grant, holder, operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Text, Uuid } from '../wire/types.ts'
import { endByOperator, type RevokedGrant, refusedByOperator, toRevoked } from './operator.ts'
import { lockActiveGrants } from './revoke.ts'
import { RoleName } from './scope.ts'

/** Works for removed actors and deleted accounts too. Offers that depend on the grant are superseded. */
export const revokeRole = operation({
  doc: 'End a grant of a role. Refused for the last admin.',
  input: z.strictObject({ actor_id: Uuid, role_grant_id: Uuid, reason: Text(500).nullish() }),
  event: 'role_grant_revoke',
  errors: ['role_grant_not_found', 'role_grant_path_not_allowed', 'cannot_revoke_last_admin'],
  async handler({ actor_id, role_grant_id, reason = null }, { app, fail, ...work }): Promise<void> {
    const [found] = await lockActiveGrants(work.db, actor_id, sql`g.id = ${role_grant_id}::uuid`)
    if (!found) throw fail('role_grant_not_found')
    if (found.role === 'keeper') throw refusedByOperator(work, found, 'role_grant_path_not_allowed')
    await endByOperator(app, work, [found], reason)
  },
  command: {
    name: 'role revoke',
    args: { actor_id: holder, role_grant_id: grant },
    details:
      'Without a scope, the global grant ends. --actor may also name a removed actor; `actor list` shows the roles that it still holds.',
    done: { revoked: true },
    phrase: (_, { who, words }) => `${who} is no longer ${words.ROLE}.`,
  },
})

/** Returns an empty list if the actor has no such grant. */
export const revokeRoleEverywhere = operation({
  doc: 'End every active grant of a role to an actor, global and in all scopes.',
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

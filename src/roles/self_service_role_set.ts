import { z } from 'zod'
import { lockWithCredential } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { auditConferred, confer } from './grants.ts'
import { activeGrantsWhere, endGrants } from './revoke.ts'
import { RoleName } from './scope.ts'

export const self_service_role_set = mutation({
  doc: 'Give the acting actor a role that the operator allows for self-service, or take it away; always globally.',
  auth: { account: 'required', actor: 'required' },
  enabled: (_config, { selfService }) => selfService !== undefined,
  event: 'role_grant_create',
  rate_limit: 'account',
  rate_limit_group: 'role_write',
  input: z.strictObject({ role: RoleName, enabled: z.boolean() }),
  output: z.object({ ok: z.literal(true), enabled: z.boolean(), changed: z.boolean() }),
  errors: ['role_not_self_service_eligible', 'account_vanished'],
  async handler({ role, enabled }, { app, account, actor, credential, fail, ...work }) {
    const { db, audit } = work
    if (!app.registry.selfService?.has(role)) throw fail('role_not_self_service_eligible')
    const [, isLive, held] = await Promise.all([
      lockWithCredential(db, { account, credential }),
      db.first(sql`select 1 from actor where id = ${actor.id}::uuid and deleted_at is null`),
      activeGrantsWhere(db, sql`g.actor_id = ${actor.id}::uuid and g.role = ${role} and g.scope_id is null`),
    ])
    if (!isLive) throw fail('account_vanished')

    const changed = enabled !== held.length > 0
    if (changed && enabled) {
      const grant = { actor_id: actor.id, role, granted_by: actor.id }
      const source = { source: 'self_service' as const }
      auditConferred(audit, { ...grant, account_id: account.id }, await confer(db, grant), source)
    } else if (changed)
      await endGrants(app, work, held, { cause: 'self_service', revoked_by: actor.id, reason: null })
    return { ok: true as const, enabled, changed }
  },
})

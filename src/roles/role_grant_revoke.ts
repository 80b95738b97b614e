import { z } from 'zod'
import { holdCredential } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { recorded } from '../core/mutate.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { OrNull, Text, Uuid } from '../wire/types.ts'
import { lostAdmin } from './admin.ts'
import { endGrants, lastAdminAmong, lockActiveGrants } from './revoke.ts'

export const role_grant_revoke = mutation({
  doc: 'End an active grant of an actor, which may be the caller’s own. Offers that depend on it are superseded.',
  auth: { role: 'admin' },
  event: 'role_grant_revoke',
  rate_limit: 'account',
  rate_limit_group: 'role_revoke',
  input: z.strictObject({ actor_id: Uuid, role_grant_id: Uuid, reason: OrNull(Text(500)) }),
  output: z.object({ ok: z.literal(true), revoked: z.literal(true) }),
  errors: ['role_grant_not_found', 'role_not_web_grantable', 'cannot_revoke_last_admin'],
  async handler(
    { actor_id, role_grant_id, reason = null },
    { app, account, actor, credential, fail, ...work },
  ) {
    const { db } = work
    const [grant] = await lockActiveGrants(db, actor_id, sql`g.id = ${role_grant_id}::uuid`, [account.id])
    if (!grant) throw fail('role_grant_not_found')
    const refuse = (why: 'role_not_web_grantable' | 'cannot_revoke_last_admin') =>
      recorded(
        'role_grant_revoke',
        refusal(why),
        { reason: why, role: grant.role, role_grant_id },
        { target_actor_id: actor_id, target_account_id: grant.account_id },
      )
    if (!app.registry.grantable.includes(grant.role)) throw refuse('role_not_web_grantable')
    const [isLast, lost, isHeld] = await Promise.all([
      lastAdminAmong(db, [grant]),
      // Of two admins who revoke each other at once, the first succeeds.
      lostAdmin(db, actor),
      holdCredential(db, { account, credential }),
    ])
    if (isLast) throw refuse('cannot_revoke_last_admin')
    if (lost) throw lost
    if (!isHeld) throw refusal('authentication_required')
    await endGrants(app, work, [grant], { cause: 'admin', revoked_by: actor.id, reason })
    return { ok: true as const, revoked: true as const }
  },
})

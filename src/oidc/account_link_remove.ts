import { z } from 'zod'
import { lockWithFreshSession } from '../accounts/locks.ts'
import { waysIn } from '../auth/ways-in.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { endFlows } from '../sign-in/flow.ts'
import { Uuid } from '../wire/types.ts'

export const account_link_remove = mutation({
  doc: 'Remove the link of the caller’s account to a provider. `removed` is false for an unknown link, or one of another account.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'], fresh: true },
  event: 'factor_remove',
  rate_limit: 'account',
  rate_limit_group: 'credential',
  enabled: (_config, registry) => registry.providers.size > 0,
  input: z.strictObject({ link_id: Uuid }),
  output: z.object({ ok: z.literal(true), removed: z.boolean() }),
  errors: ['account_vanished', 'authentication_required', 'last_sign_in_method'],
  async handler({ link_id }, { app, account, credential, fail, ...work }) {
    const { db, audit } = work
    await lockWithFreshSession(app, db, { account, credential })
    const removed = await db.first<{ provider: string; issuer: string }>(sql`
      delete from account_link where id = ${link_id}::uuid and account_id = ${account.id}::uuid
      returning provider, issuer`)
    if (!removed) return { ok: true as const, removed: false }
    const { provider, issuer } = removed
    const { ways } = await db.one<{ ways: string[] }>(sql`
      select ${waysIn(app)} as ways from account where id = ${account.id}::uuid`)
    // A link to a provider that is no longer configured admits nobody.
    const isConfigured = [...app.registry.providers.values()].some((one) => one.issuer === issuer)
    if (ways.length === 0 && isConfigured) throw fail('last_sign_in_method')
    await endFlows(db, account.id)
    audit(
      'factor_remove',
      { factor: 'link', factor_id: link_id, provider, credential_type: credential.type },
      { target_account_id: account.id },
    )
    await notify(app, work, account.id, 'link_removed')
    return { ok: true as const, removed: true }
  },
})

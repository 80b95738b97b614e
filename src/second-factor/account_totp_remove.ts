import { z } from 'zod'
import { lockWithFreshSession } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { factorRemoved } from './factors.ts'

export const account_totp_remove = mutation({
  doc: 'Remove TOTP from the caller’s account. Removing the last second factor removes the recovery codes too.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'], fresh: true },
  event: 'factor_remove',
  rate_limit: 'account',
  rate_limit_group: 'credential',
  output: z.object({ ok: z.literal(true), removed: z.boolean() }),
  errors: ['second_factor_policy'],
  async handler(_input, { app, account, credential, ...work }) {
    const { db, audit } = work
    await lockWithFreshSession(app, db, { account, credential })
    const rows = await db.rows<{ id: string; confirmed_at: string | null }>(sql`
      delete from account_totp where account_id = ${account.id}::uuid returning id, confirmed_at`)
    const totp = rows.find(({ confirmed_at }) => confirmed_at !== null)
    if (!totp) return { ok: true as const, removed: false }
    const detail = { credential_type: credential.type }
    await factorRemoved(app, work, account.id, detail, { byOwner: true })
    audit(
      'factor_remove',
      { factor: 'totp', factor_id: totp.id, ...detail },
      { target_account_id: account.id },
    )
    return { ok: true as const, removed: true }
  },
})

import { z } from 'zod'
import { lockWithFreshSession } from '../accounts/locks.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { waysIn } from '../auth/ways-in.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { factorRemoved } from '../second-factor/factors.ts'
import { endFlows } from '../sign-in/flow.ts'
import { hasPasskeys } from './passkeys.ts'
import { PasskeyId } from './webauthn.ts'

export const account_passkey_remove = mutation({
  doc: 'Remove a passkey of the caller’s account. `removed` is false for an unknown one, or one of another account.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'], fresh: true },
  event: 'factor_remove',
  before_enrolment: true,
  rate_limit: 'account',
  rate_limit_group: 'credential',
  enabled: hasPasskeys,
  input: z.strictObject({ passkey_id: PasskeyId }),
  output: z.object({ ok: z.literal(true), removed: z.boolean() }),
  errors: ['account_vanished', 'authentication_required', 'last_sign_in_method', 'second_factor_policy'],
  async handler({ passkey_id }, { app, account, credential, fail, ...work }) {
    const { db, audit } = work
    const { id: account_id } = await lockWithFreshSession(app, db, { account, credential })
    // A passkey of another domain admits nobody here.
    const removed = await db.first<{ admits: boolean; second_factor: boolean }>(sql`
      delete from account_passkey where id = ${passkey_id} and account_id = ${account_id}::uuid
      returning first_factor and rp_id = ${app.config.rp_id} as admits, second_factor`)
    if (!removed) return { ok: true as const, removed: false }
    const { ways } = await db.one<{ ways: string[] }>(sql`
      select ${waysIn(app)} as ways from account where id = ${account_id}::uuid`)
    if (removed.admits && ways.length === 0) throw fail('last_sign_in_method')
    const detail = { credential_type: credential.type }
    const notice = 'passkey_removed'
    if (removed.second_factor) await factorRemoved(app, work, account_id, detail, { byOwner: true, notice })
    else {
      await endFlows(db, account_id)
      await notify(app, work, account_id, notice)
    }
    const factor_id = sha256Hex(passkey_id)
    audit('factor_remove', { factor: 'passkey', factor_id, ...detail }, { target_account_id: account_id })
    return { ok: true as const, removed: true }
  },
})

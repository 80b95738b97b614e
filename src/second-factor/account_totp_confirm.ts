import { z } from 'zod'
import { lockWithSession } from '../accounts/locks.ts'
import { hasTotp } from '../config/second-factor.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { strengthen } from '../sessions/sessions.ts'
import { factorAdded } from './factors.ts'
import { pendingFor } from './pending.ts'
import { type StoredTotp, storedStepOf, storedTotp, TotpCode } from './totp.ts'

export const account_totp_confirm = mutation({
  doc: 'Confirm the TOTP that this session began to add, with one of its codes. The answer has recovery codes if the account had none.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  event: 'factor_add',
  secret_reply: true,
  before_enrolment: true,
  rate_limit: 'account',
  rate_limit_group: 'credential',
  enabled: hasTotp,
  input: z.strictObject({ code: TotpCode }),
  output: z.object({ ok: z.literal(true), recovery_codes: z.array(z.string()).nullable() }),
  errors: ['flow_expired', 'invalid_code'],
  async handler({ code }, { app, account, credential, db, audit, afterCommit, fail }) {
    await lockWithSession(db, account.id, credential.id)
    const pending = await db.first<StoredTotp>(sql`
      select ${storedTotp} from account_totp
      where account_id = ${account.id}::uuid and confirmed_at is null and session_id = ${credential.id}
        and created_at > statement_timestamp() - ${pendingFor}`)
    if (!pending) throw fail('flow_expired')
    const step = storedStepOf(app, pending, account.id, code)
    if (step === undefined) throw fail('invalid_code')

    const detail = { credential_type: credential.type }
    const target = { target_account_id: account.id }
    const replaced = await db.rows<{ id: string }>(sql`
      delete from account_totp where account_id = ${account.id}::uuid and confirmed_at is not null returning id`)
    await db.run(sql`
      with confirmed as (
        update account_totp set confirmed_at = now(), session_id = null, last_step = ${step}
        where id = ${pending.id}::uuid
      ) ${strengthen(credential.id, 'totp')}`)
    for (const { id } of replaced)
      audit('factor_remove', { factor: 'totp', factor_id: id, ...detail }, target)
    audit('factor_add', { factor: 'totp', factor_id: pending.id, ...detail }, target)
    const recovery_codes = await factorAdded(app, { db, audit, afterCommit }, account.id, detail)
    return { ok: true as const, recovery_codes }
  },
})

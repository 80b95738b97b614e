import { z } from 'zod'
import { lockWithFreshSession } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { notify } from '../delivery/notify.ts'
import { endFlows } from '../sign-in/flow.ts'
import { addCodes, stateOf } from './factors.ts'

export const account_recovery_codes_create = mutation({
  doc: 'Make ten recovery codes, shown once, which replace all earlier ones. Each can be used once instead of a second factor.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'], fresh: true },
  event: 'factor_add',
  secret_reply: true,
  rate_limit: 'account',
  rate_limit_group: 'credential',
  output: z.object({ ok: z.literal(true), recovery_codes: z.array(z.string()) }),
  errors: ['second_factor_missing'],
  async handler(_input, { app, account, credential, fail, ...work }) {
    await lockWithFreshSession(app, work.db, { account, credential })
    if (!(await stateOf(app, work.db, account.id)).active) throw fail('second_factor_missing')
    await endFlows(work.db, account.id)
    const recovery_codes = await addCodes(work, account.id, { credential_type: credential.type })
    await notify(app, work, account.id, 'recovery_codes_replaced')
    return { ok: true as const, recovery_codes }
  },
})

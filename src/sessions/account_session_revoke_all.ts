import { z } from 'zod'
import { lockIfLive } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'

export const account_session_revoke_all = mutation({
  doc: 'End every session of the caller’s account, including the current one.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  before_enrolment: true,
  event: 'session_revoke_all',
  output: z.object({ ok: z.literal(true), count: z.int() }),
  errors: ['account_vanished'],
  async handler(_input, { account, credential, db, audit, fail }) {
    if (!(await lockIfLive(db, account.id))) throw fail('account_vanished')
    const count = await db.run(sql`
      delete from auth_session where account_id = ${account.id}::uuid and expires_at > statement_timestamp()`)
    if (count > 0)
      audit(
        'session_revoke_all',
        { count, credential_type: credential.type },
        { target_account_id: account.id },
      )
    return { ok: true as const, count }
  },
})

import { z } from 'zod'
import { SessionId } from '../accounts/formats.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'

export const account_session_revoke = mutation({
  doc: 'End one session of the caller’s account. `revoked` is false for an expired or unknown session, or one of another account.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  before_enrolment: true,
  event: 'session_revoke',
  input: z.strictObject({ session_id: SessionId }),
  output: z.object({ ok: z.literal(true), revoked: z.boolean() }),
  async handler({ session_id }, { account, credential, db, audit }) {
    const ended = await db.run(sql`
      delete from auth_session
      where id = ${session_id} and account_id = ${account.id}::uuid and expires_at > now()`)
    if (ended > 0)
      audit(
        'session_revoke',
        { session_id, credential_type: credential.type },
        { target_account_id: account.id },
      )
    return { ok: true as const, revoked: ended > 0 }
  },
})

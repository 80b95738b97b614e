import { z } from 'zod'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { ApiTokenId } from './tokens.ts'

export const account_token_revoke = mutation({
  doc: 'End one API token of the caller’s account. `revoked` is false for an unknown token, or one of another account.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  event: 'token_revoke',
  input: z.strictObject({ token_id: ApiTokenId }),
  output: z.object({ ok: z.literal(true), revoked: z.boolean() }),
  async handler({ token_id }, { account, credential, db, audit }) {
    const ended = await db.run(sql`
      delete from api_token where id = ${token_id} and account_id = ${account.id}::uuid`)
    if (ended > 0)
      audit('token_revoke', { token_id, credential_type: credential.type }, { target_account_id: account.id })
    return { ok: true as const, revoked: ended > 0 }
  },
})

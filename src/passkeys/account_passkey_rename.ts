import { z } from 'zod'
import { lockWithSession } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { hasPasskeys, PasskeyName } from './passkeys.ts'
import { PasskeyId } from './webauthn.ts'

export const account_passkey_rename = mutation({
  doc: 'Give a passkey of the caller’s account another name. `renamed` is false for an unknown one, or one of another account.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  event: 'factor_add',
  before_enrolment: true,
  rate_limit: 'account',
  rate_limit_group: 'credential',
  enabled: hasPasskeys,
  input: z.strictObject({ passkey_id: PasskeyId, name: PasskeyName }),
  output: z.object({ ok: z.literal(true), renamed: z.boolean() }),
  errors: ['account_vanished', 'authentication_required'],
  async handler({ passkey_id, name }, { account, credential, db }) {
    await lockWithSession(db, account.id, credential.id)
    const renamed = await db.run(sql`
      update account_passkey set name = ${name} where id = ${passkey_id} and account_id = ${account.id}::uuid`)
    return { ok: true as const, renamed: renamed > 0 }
  },
})

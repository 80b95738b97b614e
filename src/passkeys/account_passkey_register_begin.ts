import { z } from 'zod'
import { lockWithFreshSession } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { storeFlow } from '../sign-in/flow.ts'
import { hasPasskeys, partyOf, passkeysMax, passkeysOf } from './passkeys.ts'
import { creationOptions, newChallenge } from './webauthn.ts'

export const account_passkey_register_begin = mutation({
  doc: 'Begin to add a passkey: returns options for `navigator.credentials.create`. With `second_factor`, signing in with a password will also ask for the passkey.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'], fresh: true },
  event: 'factor_add',
  before_enrolment: true,
  rate_limit: 'account',
  rate_limit_group: 'credential',
  enabled: hasPasskeys,
  input: z.strictObject({ second_factor: z.boolean().default(false) }),
  output: z.object({ ok: z.literal(true), options: z.looseObject({ challenge: z.string() }) }),
  errors: ['account_vanished', 'authentication_required', 'passkey_limit'],
  async handler({ second_factor }, { app, account, credential, db, fail }) {
    const { id: account_id, username } = await lockWithFreshSession(app, db, { account, credential })
    const known = await passkeysOf(app, db, account_id)
    if (known.length >= passkeysMax) throw fail('passkey_limit')
    const session_id = credential.id as string
    const challenge = newChallenge()
    const intent = second_factor ? 'second_factor' : null
    await storeFlow(db, session_id, { kind: 'passkey_register', account_id, session_id, challenge, intent })
    const options = await creationOptions(partyOf(app.config), { id: account_id, username }, challenge, known)
    return { ok: true as const, options: { ...options } }
  },
})

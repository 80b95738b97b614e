import { z } from 'zod'
import { route } from '../core/route.ts'
import { openFlow } from '../sign-in/flow.ts'
import { partyOf } from './passkeys.ts'
import { newChallenge, requestOptions } from './webauthn.ts'

/** `POST /passkey_begin`: names no passkey, so that nobody learns who has one. */
export const passkey_begin = route({
  doc: 'Begin to sign in with a passkey, or to prove again who is signed in: returns options for `navigator.credentials.get`.',
  method: 'POST',
  path: '/passkey_begin',
  auth: { account: 'optional', actor: 'none' },
  checksOrigin: true,
  before_enrolment: true,
  rate_limit: { ip: 'flow_ip' },
  enabled: ({ config }) => config.passkeys,
  input: z.strictObject({}),
  output: z.object({ options: z.looseObject({ challenge: z.string() }) }),
  errors: ['rate_limited', 'account_vanished', 'authentication_required'],
  async handler(_input, { app, account, credential, attempt, ip }) {
    return await attempt([], async (hold) => {
      await hold.also('flow_ip', () => true)
      const challenge = newChallenge()
      const isSession = account && credential?.type === 'session'
      const owner = isSession ? { account_id: account.id, session_id: credential.id } : {}
      const { cookie } = await openFlow(app, ip, { kind: 'passkey', challenge, ...owner })
      const options = await requestOptions(partyOf(app.config), challenge)
      return { body: { options: { ...options } }, cookie }
    })
  },
})

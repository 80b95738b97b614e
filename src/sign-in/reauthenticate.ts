import { z } from 'zod'
import { PasswordProvided } from '../accounts/formats.ts'
import {
  lockProven,
  type OwnSession,
  ownSession,
  type ProvenPassword,
  provePassword,
} from '../accounts/prove-password.ts'
import { failureFloor } from '../auth/failure-floor.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { route } from '../core/route.ts'
import { refusal, ServiceError } from '../errors.ts'
import { renewByPasskey, takeOwnChallenge } from '../passkeys/renew.ts'
import { AssertionResponse } from '../passkeys/webauthn.ts'
import type { StartedSession } from '../sessions/sessions.ts'
import { exactlyOne } from '../wire/rules.ts'
import { signIn } from './sign-in.ts'

/** `POST /reauthenticate`: a fresh session in place of the presented one, so that a stolen copy of its cookie ends. */
export const reauthenticate = route({
  doc: 'Prove again who is signed in, for calls that need a fresh session; replaces the session cookie.',
  method: 'POST',
  path: '/reauthenticate',
  auth: ownSession,
  checksOrigin: true,
  before_enrolment: true,
  rate_limit: { ip: 'login_ip', account: 'login_account' },
  input: z
    .strictObject({ password: PasswordProvided.optional(), passkey: AssertionResponse.optional() })
    .superRefine(exactlyOne('Give exactly one: password or passkey.')),
  output: z.object({ ok: z.literal(true) }),
  errors: [
    'flow_expired',
    'rate_limited',
    'busy',
    'invalid_credentials',
    'account_vanished',
    'second_factor_required',
  ],
  async handler({ password = '', passkey }, context) {
    const { app } = context
    const challenge = passkey ? await takeOwnChallenge(context) : null
    const floor = failureFloor(app.config)
    try {
      const session = await context.attempt(['invalid_credentials'], async (hold) => {
        const outcome = passkey
          ? await renewByPasskey(context, hold, challenge, passkey)
          : await provePassword(context, hold, password, (proven) => renew(context, proven))
        if (typeof outcome === 'string') throw await failed(context)
        return outcome
      })
      const cookie = passkey ? [session.cookie, app.flowCookie.clear()] : session.cookie
      return { body: { ok: true as const }, cookie }
    } catch (error) {
      if (error instanceof ServiceError && error.status === 401) await floor
      throw error
    }
  },
})

async function renew(
  context: OwnSession,
  { verified, bucket }: ProvenPassword,
): Promise<StartedSession | string> {
  const { app, account, credential, carriers, ip } = context
  const subject = callerSubject({ account }, ip)
  return await mutate(app, 'reauthenticate', { subject }, async (work) => {
    const changed = await lockProven(work.db, context, verified)
    if (changed !== null) return changed
    const session = await signIn(app, work, {
      account_id: account.id,
      proof: { methods: ['password'] },
      presented: carriers,
      ip,
      renews: credential.id as string,
    })
    work.afterCommit(() => app.limiters.clear('login_account', [bucket]))
    return session
  })
}

async function failed({ app, account, ip }: OwnSession): Promise<ServiceError> {
  await app.audit.failure({
    event_type: 'reauthenticate',
    outcome: 'failure',
    ...callerSubject({ account }, ip),
    target_account_id: account.id,
    metadata: { reason: 'invalid_credentials' },
  })
  return refusal('invalid_credentials')
}

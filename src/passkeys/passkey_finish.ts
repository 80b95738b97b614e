import { z } from 'zod'
import { lockIfLive } from '../accounts/locks.ts'
import { failureFloor } from '../auth/failure-floor.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { type RouteContext, route } from '../core/route.ts'
import { refusal, ServiceError } from '../errors.ts'
import { endForeignSession, type StartedSession } from '../sessions/sessions.ts'
import { takeOwnFlow } from '../sign-in/flow.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { type ProvenPasskey, provePasskey, usePasskey } from './passkeys.ts'
import { AssertionResponse } from './webauthn.ts'

const auth = { account: 'none', actor: 'none' } as const
type Context = RouteContext<typeof auth>
type Failure = 'invalid_credentials' | 'passkey_counter'

/** `POST /passkey_finish`: the passkey names the account, and its device has checked who uses it. */
export const passkey_finish = route({
  doc: 'Sign in with the response of a passkey; sets a session cookie.',
  method: 'POST',
  path: '/passkey_finish',
  auth,
  checksOrigin: true,
  rate_limit: { ip: 'login_ip' },
  enabled: ({ config }) => config.passkeys,
  input: z.strictObject({ response: AssertionResponse }),
  output: z.object({ ok: z.literal(true) }),
  errors: ['flow_expired', 'rate_limited', 'invalid_credentials'],
  async handler({ response }, context) {
    const { app, carriers, ip } = context
    const { challenge } = await takeOwnFlow(context, 'passkey')
    const floor = failureFloor(app.config)
    try {
      const session = await context.attempt(['invalid_credentials'], async (hold) => {
        await hold.ip()
        const proven = await provePasskey(app, app.db, challenge, response)
        const counts = proven?.first_factor && proven.is_verified && response.response.userHandle
        const outcome = proven && counts ? await enter(context, proven) : 'invalid_credentials'
        if (typeof outcome === 'string') throw await failed(context, proven, outcome)
        return outcome
      })
      await endForeignSession(app, session.account_id, carriers, ip)
      return { body: { ok: true as const }, cookie: [session.cookie, app.flowCookie.clear()] }
    } catch (error) {
      if (error instanceof ServiceError && error.status === 401) await floor
      throw error
    }
  },
})

async function enter(
  { app, carriers, ip }: Context,
  proven: ProvenPasskey,
): Promise<StartedSession | Failure> {
  const { account_id } = proven
  const subject = callerSubject({ account: { id: account_id } }, ip)
  return await mutate(app, 'login', { subject }, async (work) => {
    if (!(await lockIfLive(work.db, account_id))) return 'invalid_credentials'
    const used = await usePasskey(app, work, proven)
    if (used !== 'used') return used === 'gone' ? 'invalid_credentials' : used
    const proof = { methods: ['passkey'], strong: true } as const
    return await signIn(app, work, { account_id, proof, presented: carriers, ip })
  })
}

async function failed(
  { app, ip }: Context,
  proven: ProvenPasskey | undefined,
  reason: Failure,
): Promise<ServiceError> {
  const account = proven ? { id: proven.account_id } : null
  await app.audit.failure({
    event_type: 'login',
    outcome: 'failure',
    ...callerSubject({ account }, ip),
    metadata: { reason },
  })
  return refusal('invalid_credentials')
}

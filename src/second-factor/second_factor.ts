import { z } from 'zod'
import { holdSession, lockIfLive } from '../accounts/locks.ts'
import { failureFloor } from '../auth/failure-floor.ts'
import { callerSubject, mutate, type Work } from '../core/mutate.ts'
import { type RouteContext, route } from '../core/route.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { refusal, ServiceError } from '../errors.ts'
import { accountKey, crowdOf } from '../limits/limiters.ts'
import { usePasskeyStep } from '../passkeys/second-step.ts'
import { AssertionResponse } from '../passkeys/webauthn.ts'
import { endForeignSession, presentedId, type StartedSession } from '../sessions/sessions.ts'
import { type Flow, flowColumns, flowOf, takeFlow } from '../sign-in/flow.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { exactlyOne } from '../wire/rules.ts'
import { RecoveryCode, useCode } from './recovery-codes.ts'
import { signInBuckets } from './sign-in-buckets.ts'
import { TotpCode, useTotp } from './totp.ts'

const auth = { account: 'none', actor: 'none' } as const
type Context = RouteContext<typeof auth>
type Begun = Flow & { account_id: string; attempts: number }
type Factor = keyof typeof factors

const input = z.strictObject({
  totp: TotpCode.optional(),
  recovery_code: RecoveryCode.optional(),
  passkey: AssertionResponse.optional(),
})
type Given = z.output<typeof input>

/** Each uses up its proof under the account lock, and resolves to whether it was right. */
const factors = {
  totp: ({ app }: Context, { db }: Work, { account_id }: Begun, { totp = '' }: Given) =>
    useTotp(app, db, account_id, totp),
  recovery_code: async ({ app }: Context, work: Work, { account_id }: Begun, given: Given) => {
    const isRight = await useCode(work.db, account_id, given.recovery_code ?? '')
    if (isRight) await notify(app, work, account_id, 'recovery_code_used')
    return isRight
  },
  passkey: async ({ app }: Context, work: Work, flow: Begun, { passkey }: Given) =>
    passkey !== undefined && (await usePasskeyStep(app, work, flow, passkey)),
}

/** Max attempts of one flow. So many of an account, in whichever flows, are reported to its owner. */
const attemptsMax = 5

/** `POST /second_factor`: the second step of a sign-in, or of proving again who is signed in. */
export const second_factor = route({
  doc: 'Complete a sign-in with a second factor: exactly one of a TOTP code, a recovery code and the response of a passkey; sets a session cookie.',
  method: 'POST',
  path: '/second_factor',
  auth,
  checksOrigin: true,
  rate_limit: { account: 'second_factor' },
  input: input.superRefine(exactlyOne('Give exactly one: totp, recovery_code or passkey.')),
  output: z.object({ ok: z.literal(true) }),
  errors: ['flow_expired', 'rate_limited', 'invalid_second_factor'],
  async handler(given, context) {
    const { app, carriers, ip } = context
    const [method] = Object.keys(given) as [Factor]
    const floor = failureFloor(app.config)
    try {
      const flow = await takeAttempt(context)
      const session = await context.attempt(['invalid_second_factor'], async (hold) => {
        await hold.account(accountKey(flow.account_id))
        const tries = await app.limiters.count('second_factor', accountKey(flow.account_id))
        const outcome = await complete(context, { ...flow, tries }, method, given)
        if (outcome === 'wrong') throw await failed(context, flow, method)
        return outcome
      })
      if (flow.session_id === null) await endForeignSession(app, session.account_id, carriers, ip)
      return { body: { ok: true as const }, cookie: [session.cookie, app.flowCookie.clear()] }
    } catch (error) {
      if (error instanceof ServiceError && error.status === 401) await floor
      throw error
    }
  },
})

/** Counted before the proof is checked and in a statement of its own, so that parallel guesses share the attempts. */
async function takeAttempt({ app, flow: token, ip }: Context): Promise<Begun> {
  if (token === null) throw refusal('flow_expired')
  const counted = sql`
    update sign_in_flow set attempts = attempts + 1
    where ${flowOf(token, 'second_factor')} and attempts < ${attemptsMax}
    returning ${flowColumns}, attempts`
  const flow = await app.gate.run(crowdOf(ip), () => app.db.first<Begun>(counted))
  if (!flow) throw refusal('flow_expired')
  return flow
}

async function complete(
  context: Context,
  flow: Begun & { tries: number },
  method: Factor,
  given: Given,
): Promise<StartedSession | 'wrong'> {
  const { app, carriers, ip, flow: token } = context
  const { account_id, session_id } = flow
  const subject = callerSubject({ account: { id: account_id } }, ip)
  return await mutate(app, 'second_factor', { subject }, async (work) => {
    const { db, audit, afterCommit } = work
    const isLive = await lockIfLive(db, account_id)
    if (!isLive || !(await isUnderWay(context, work, flow))) throw refusal('flow_expired')
    if (!(await factors[method](context, work, flow, given))) {
      const isLast = flow.attempts >= attemptsMax
      if (isLast) await takeFlow(db, token, 'second_factor')
      const isReported = isLast || flow.tries >= attemptsMax
      if (isReported && !(await wasNotified(context, work, account_id)))
        await notify(app, work, account_id, 'second_factor_attempts')
      return 'wrong'
    }
    await takeFlow(db, token, 'second_factor')
    audit('second_factor', null)
    const buckets = await signInBuckets(db, account_id, ip)
    const session = await signIn(app, work, {
      account_id,
      proof: { methods: [...(flow.methods ?? []), method], strong: true },
      provider: flow.provider ?? undefined,
      presented: carriers,
      ip,
      renews: session_id ?? undefined,
    })
    afterCommit(async () => {
      await app.limiters.clear('login_account', buckets)
      await app.limiters.clear('second_factor', [accountKey(account_id)])
    })
    return session
  })
}

/** Whether the owner has been notified of wrong proofs within the window in which they are counted. */
async function wasNotified({ app }: Context, { db }: Work, account_id: string): Promise<boolean> {
  const seconds = app.config.limit_second_factor?.seconds ?? 0
  const notified = await db.first(sql`
    select 1 from message_outbox where account_id = ${account_id}::uuid and notice = 'second_factor_attempts'
      and created_at > now() - ${seconds}::integer * interval '1 second' limit 1`)
  return notified !== undefined
}

/** Whatever changes the account's ways in removes its flows. A renewed proof also needs the session it began with. */
async function isUnderWay({ carriers, flow: token }: Context, { db }: Work, flow: Begun): Promise<boolean> {
  const { session_id, account_id } = flow
  if (session_id !== null && session_id !== presentedId(carriers)) return false
  const left = await db.first(sql`select 1 from sign_in_flow where ${flowOf(token ?? '', 'second_factor')}`)
  return left !== undefined && (session_id === null || (await holdSession(db, account_id, session_id)))
}

async function failed({ app, ip }: Context, { account_id }: Begun, method: Factor): Promise<ServiceError> {
  await app.audit.failure({
    event_type: 'second_factor',
    outcome: 'failure',
    ...callerSubject({ account: { id: account_id } }, ip),
    metadata: { reason: 'invalid_second_factor', method },
  })
  return refusal('invalid_second_factor')
}

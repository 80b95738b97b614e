import { z } from 'zod'
import { failureFloor } from '../auth/failure-floor.ts'
import { callerSubject } from '../core/mutate.ts'
import { type RouteHold, route } from '../core/route.ts'
import { hasReason, refusal, ServiceError } from '../errors.ts'
import { endForeignSession } from '../sessions/sessions.ts'
import { type Flow, takeOwnFlow } from '../sign-in/flow.ts'
import { enter } from './enter.ts'
import { checksOf } from './flow-checks.ts'
import { identityOf } from './identity.ts'
import { linkIdentity } from './link.ts'
import { auth, type Context, type Finished, type Proven } from './proven.ts'
import { reauthenticate } from './reauthenticate.ts'

const charged = ['oidc_failed', 'oidc_not_allowed', 'oidc_unknown_account'] as const
const audited = [...charged, 'oidc_account_exists'] as const
/** Refused after the same time, whatever the cause. */
const floored = [...audited, 'second_factor_required'] as const

/** `POST /oidc_finish`: the page at the redirect posts what the provider put into its query. */
export const oidc_finish = route({
  doc: 'Finish what `/oidc_start` began, with the query of the page to which the provider redirected the browser.',
  method: 'POST',
  path: '/oidc_finish',
  auth,
  checksOrigin: true,
  before_enrolment: true,
  rate_limit: { ip: 'login_ip' },
  enabled: ({ registry }) => registry.providers.size > 0,
  input: z.strictObject({ provider: z.string().max(32), query: z.string().min(1).max(8192) }),
  output: z.object({ ok: z.literal(true), created: z.boolean(), linked: z.boolean() }),
  errors: [
    'flow_expired',
    'rate_limited',
    'oidc_failed',
    'provider_unavailable',
    'oidc_not_allowed',
    'oidc_unknown_account',
    'oidc_account_exists',
    'oidc_linked_elsewhere',
    'second_factor_required',
    'busy',
  ],
  async handler({ provider, query }, context) {
    const { app, carriers, ip } = context
    // First, so that only one request redeems the code, even if others have it too.
    const flow = await takeOwnFlow(context, 'oidc')
    const floor = failureFloor(app.config)
    try {
      const { session, ...result } = await context.attempt(charged, async (hold) => {
        await hold.ip()
        return await finish(context, hold, await proof(context, flow, { provider, query }))
      })
      if (session) await endForeignSession(app, session.account_id, carriers, ip)
      const cookies = [...(session ? [session.cookie] : []), app.flowCookie.clear()]
      return { body: { ok: true as const, ...result }, cookie: cookies }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      if (hasReason(error, ...audited)) await recordFailure(context, flow, error.reason)
      if (hasReason(error, ...floored)) await floor
      error.cookie ??= app.flowCookie.clear()
      throw error
    }
  },
})

/** Holds no connection of the database while it asks the provider. */
async function proof(
  { app, flow: token, credential }: Context,
  flow: Flow,
  posted: { provider: string; query: string },
): Promise<Proven> {
  const provider = app.registry.providers.get(posted.provider)
  if (!provider || flow.provider !== provider.id) throw refusal('oidc_failed')
  if (flow.session_id !== null && flow.session_id !== credential?.id) throw refusal('flow_expired')
  const checks = checksOf(token as string)
  const maxAge = flow.intent === 'reauthenticate' ? flow.age : undefined
  const claims = await app.oidc.claims(provider, posted.query, { ...checks, maxAge })
  return { provider, identity: identityOf(provider, claims), flow }
}

function finish(context: Context, hold: RouteHold, proven: Proven): Promise<Finished> {
  const { intent } = proven.flow
  if (intent === 'link') return linkIdentity(context, proven)
  return intent === 'reauthenticate' ? reauthenticate(context, proven) : enter(context, hold, proven)
}

async function recordFailure({ app, account, ip }: Context, { intent, provider }: Flow, reason: string) {
  if (intent === 'link') return
  const isRenewal = intent === 'reauthenticate'
  await app.audit.failure({
    event_type: isRenewal ? 'reauthenticate' : 'login',
    outcome: 'failure',
    ...callerSubject({ account: isRenewal ? account : null }, ip),
    target_account_id: isRenewal ? (account?.id ?? null) : null,
    metadata: isRenewal ? { reason: 'invalid_credentials' } : { reason, provider },
  })
}

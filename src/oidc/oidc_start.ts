import { z } from 'zod'
import { requireFresh } from '../auth/fresh.ts'
import { route } from '../core/route.ts'
import { hasReason, refusal } from '../errors.ts'
import { openFlow } from '../sign-in/flow.ts'
import { findTicket, TicketToken } from '../tickets/redeem.ts'
import { checksOf } from './flow-checks.ts'
import { noInvite } from './invited.ts'
import { auth, type Context } from './proven.ts'

/** `POST /oidc_start`: begins a flow and tells the page where to send the browser. */
export const oidc_start = route({
  doc: 'Begin to sign in with a provider, to link it to the account, or to prove again who is signed in; then go to `url`.',
  method: 'POST',
  path: '/oidc_start',
  auth,
  checksOrigin: true,
  before_enrolment: true,
  rate_limit: { ip: 'flow_ip' },
  enabled: ({ registry }) => registry.providers.size > 0,
  input: z.strictObject({
    provider: z.string().max(32),
    intent: z.enum(['sign_in', 'link', 'reauthenticate']),
    invite_token: TicketToken.optional(),
  }),
  output: z.object({ url: z.string() }),
  errors: [
    'provider_not_found',
    'authentication_required',
    'account_vanished',
    'credential_type_required',
    'fresh_authentication_required',
    'rate_limited',
    'oidc_failed',
    'provider_unavailable',
  ],
  async handler({ provider: id, intent, invite_token }, context) {
    const { app, attempt, ip } = context
    const provider = app.registry.providers.get(id)
    if (!provider) throw refusal('provider_not_found')
    const owner = intent === 'sign_in' ? null : await sessionOf(context, intent)
    return await attempt([], async (hold) => {
      await hold.also('flow_ip', () => true)
      const invite = invite_token === undefined ? undefined : await invitedBy(context, invite_token)
      const { token, cookie } = await openFlow(app, ip, {
        kind: 'oidc',
        provider: id,
        intent,
        ...invite,
        ...owner,
      })
      const again = intent === 'reauthenticate' ? { prompt: 'login', max_age: '0' } : undefined
      return { body: { url: await app.oidc.authorizationUrl(provider, checksOf(token), again) }, cookie }
    })
  },
})

async function sessionOf({ app, account, credential }: Context, intent: 'link' | 'reauthenticate') {
  if (!account || !credential) throw refusal('authentication_required')
  if (credential.type !== 'session')
    throw refusal('credential_type_required', { required_credential_types: ['session'] })
  if (intent === 'link') await requireFresh(app, app.db.point, { account, credential })
  return { account_id: account.id, session_id: credential.id }
}

/** An unknown token is refused only after the provider has named the person, so that nobody can try tokens here. */
async function invitedBy(
  { app }: Context,
  token: string,
): Promise<{ invite_id: string; challenge?: string }> {
  try {
    const found = await findTicket(app, token, ['invite'])
    const { invite_id, id: challenge } = found
    if (invite_id !== null) return { invite_id, challenge }
  } catch (error) {
    if (!hasReason(error, 'ticket_not_found')) throw error
  }
  return { invite_id: noInvite }
}

import { z } from 'zod'
import { insertAccount } from '../accounts/accounts.ts'
import { Password, Username } from '../accounts/formats.ts'
import { refuseWeak } from '../accounts/new-password.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { type RouteContext, route } from '../core/route.ts'
import { hasReason, refusal } from '../errors.ts'
import { crowdOf } from '../limits/limiters.ts'
import { endForeignSession, startSession } from '../sessions/sessions.ts'
import { Text, Uuid } from '../wire/types.ts'
import { closeBootstrap, takeBootstrapLock } from './lock.ts'

const auth = { account: 'none', actor: 'none' } as const
type Context = RouteContext<typeof auth>

const charged = ['invalid_token', 'token_file_missing', 'username_taken'] as const

/** `POST /bootstrap`: the one-time token makes the keeper account. Exactly one call succeeds. */
export const bootstrap = route({
  doc: 'Exchange the bootstrap token for the first account, with the roles keeper and admin, and a session.',
  method: 'POST',
  path: '/bootstrap',
  auth,
  checksOrigin: true,
  rate_limit: { ip: 'bootstrap_ip' },
  enabled: ({ bootstrap }) => bootstrap.mode === 'live',
  input: z.strictObject({ token: Text(4096).min(1), username: Username, password: Password }),
  output: z.object({
    ok: z.literal(true),
    account: z.object({ id: Uuid, username: z.string() }),
    actor: z.object({ id: Uuid }),
  }),
  errors: [
    'already_bootstrapped',
    'rate_limited',
    'token_file_missing',
    'invalid_token',
    'busy',
    'username_taken',
  ],
  async handler({ token, username, password }, context) {
    const { app, carriers, ip } = context
    refuseWeak(app, 'invalid_request_body', ['password', password], { username })
    if (await app.bootstrap.isDone()) throw refusal('already_bootstrapped')
    return await context.attempt(charged, async (hold) => {
      await hold.ip()
      try {
        const fault = await tokenFault(context, token)
        // The file is missing also if another request, on this node or another, has just used it.
        if (fault) throw refusal((await app.bootstrap.isDone()) ? 'already_bootstrapped' : fault)
        const password_hash = await app.passwords.hash(password, crowdOf(ip))
        const made = await createKeeper(context, token, username, password_hash)
        await app.bootstrap.discard()
        await endForeignSession(app, made.account_id, carriers, ip)
        const { account_id, actor_id, cookie } = made
        return {
          body: { ok: true as const, account: { id: account_id, username }, actor: { id: actor_id } },
          cookie,
        }
      } catch (error) {
        await recordRefusal(context, error)
        throw error
      }
    })
  },
})

async function tokenFault({ app }: Context, token: string) {
  const compared = await app.bootstrap.compare(token)
  if (compared === 'missing') return 'token_file_missing'
  return compared === 'different' ? 'invalid_token' : null
}

/** Atomic and under the bootstrap lock: of parallel attempts, exactly one makes an account. */
async function createKeeper(context: Context, token: string, username: string, password_hash: string) {
  const { app, carriers, ip } = context
  const nobody = callerSubject({ account: null }, ip)
  return await mutate(app, 'bootstrap', { subject: nobody }, async ({ db, audit }) => {
    await takeBootstrapLock(db)
    const fault = await tokenFault(context, token)
    if (fault) throw refusal(fault)
    const made = await insertAccount(db, { username, email: null, password_hash, created_by: null })
    const role_grant_ids = await closeBootstrap(db, made.actor_id)
    const session = await startSession(app, db, {
      account_id: made.account_id,
      proof: { methods: ['bootstrap'] },
      presented: carriers,
      ip,
    })
    const { account_id, actor_id } = made
    audit('bootstrap', { session_id: session.session_id, role_grant_ids }, { account_id, actor_id })
    return { ...made, cookie: session.cookie }
  })
}

async function recordRefusal({ app, ip }: Context, error: unknown): Promise<void> {
  if (!hasReason(error, ...charged)) return
  await app.audit.failure({
    event_type: 'bootstrap',
    outcome: 'failure',
    ...callerSubject({ account: null }, ip),
    metadata: { reason: error.data.reason },
  })
}

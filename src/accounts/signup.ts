import { z } from 'zod'
import { failureFloor } from '../auth/failure-floor.ts'
import { callerSubject, mutate, recorded } from '../core/mutate.ts'
import { type RouteContext, route } from '../core/route.ts'
import { sendVerification } from '../email/verification.ts'
import { hasReason, refusal } from '../errors.ts'
import { claimInvite, lockInviteFor } from '../invites/invites.ts'
import { crowdOf, identifierKey } from '../limits/limiters.ts'
import { endForeignSession, startSession } from '../sessions/sessions.ts'
import { isSignupOpen } from '../settings/settings.ts'
import { TicketToken } from '../tickets/redeem.ts'
import { Locale, Uuid } from '../wire/types.ts'
import { insertAccount, isTaken } from './accounts.ts'
import { Email, Password, Username } from './formats.ts'
import { refuseWeak } from './new-password.ts'

const auth = { account: 'none', actor: 'none' } as const
type Context = RouteContext<typeof auth>
type Applicant = {
  username: string
  email: string | null
  password_hash: string
  invite_token: string | null
  /** For the message that verifies the e-mail. */
  locale: string | undefined
}

const charged = ['no_matching_invite', 'signup_conflict'] as const

/** `POST /signup`: makes an account for a matching invite, or for anyone while signup is open. */
export const signup = route({
  doc: 'Create an account, with a matching invite or while signup is open; sets a session cookie.',
  method: 'POST',
  path: '/signup',
  auth,
  checksOrigin: true,
  rate_limit: { ip: 'signup_ip', account: 'signup_username' },
  enabled: ({ config }) => config.signup,
  input: z.strictObject({
    username: Username,
    password: Password,
    email: Email.nullish(),
    invite_token: TicketToken.optional(),
    locale: Locale.optional(),
  }),
  output: z.object({
    ok: z.literal(true),
    account: z.object({ id: Uuid, username: z.string() }),
    actor: z.object({ id: Uuid }),
  }),
  errors: ['rate_limited', 'busy', 'no_matching_invite', 'signup_conflict'],
  async handler({ username, password, email = null, invite_token = null, locale }, context) {
    const { app, carriers, ip } = context
    refuseWeak(app, 'invalid_request_body', ['password', password], { username, email })
    let floor: Promise<void> | undefined
    let isMadeOpenly = false
    try {
      const made = await context.attempt(charged, async (hold) => {
        await hold.ip()
        await hold.account(identifierKey(username))
        // A signup by an invite link does not count as an open one. The setting is read anyway, so that a refusal takes
        // as long.
        const wasOpen = (await isSignupOpen(app.db)) && invite_token === null
        if (wasOpen) await hold.also('signup_open_ip', () => isMadeOpenly)
        floor = failureFloor(app.config)
        // Hash before the outcome is known, so that all refusals take the same time.
        const password_hash = await app.passwords.hash(password, crowdOf(ip))
        const applicant = { username, email, password_hash, invite_token, locale }
        const made = await makeAccount(context, applicant, wasOpen)
        isMadeOpenly = made.open_signup
        return made
      })
      const { account_id, actor_id, cookie } = made
      await endForeignSession(app, account_id, carriers, ip)
      return {
        body: { ok: true as const, account: { id: account_id, username }, actor: { id: actor_id } },
        cookie,
      }
    } catch (error) {
      // Wait outside the attempt, so that the refusal is charged at once and not after the floor.
      if (hasReason(error, ...charged)) await floor
      throw error
    }
  },
})

/** One transaction, so that the invite stays claimable if the signup fails. */
async function makeAccount({ app, carriers, ip }: Context, applicant: Applicant, wasOpen: boolean) {
  const { username, locale } = applicant
  const nobody = callerSubject({ account: null }, ip)
  return await mutate(app, 'signup', { subject: nobody }, async ({ db, audit, afterCommit }) => {
    // Open only if both reads say so: the first read decided whether to hold the slot that counts open signups.
    const open_signup = wasOpen && (await isSignupOpen(db))
    const refuse = (reason: 'no_matching_invite' | 'signup_conflict') =>
      recorded('signup', refusal(reason), { reason, open_signup })

    const invite = open_signup ? undefined : await lockInviteFor(app, db, applicant, applicant.invite_token)
    if (!open_signup && !invite) throw refuse('no_matching_invite')
    const { created_by = null, email_verified = false } = invite ?? {}
    const made = await insertAccount(db, { ...applicant, created_by, email_verified }).catch(
      (error: unknown) => {
        throw isTaken(error) ? refuse('signup_conflict') : error
      },
    )
    const { account_id, actor_id } = made
    if (invite && !(await claimInvite(db, invite.id, account_id))) throw refuse('no_matching_invite')
    const { session_id, cookie } = await startSession(app, db, {
      account_id,
      proof: { methods: ['signup'] },
      presented: carriers,
      ip,
    })
    const claimed = invite && { invite_id: invite.id }
    audit('signup', { session_id, open_signup, ...claimed }, { account_id, actor_id })
    const detail = { credential_type: null }
    await sendVerification(app, { db, audit, afterCommit }, account_id, { detail, locale })
    afterCommit(() => app.limiters.clear('signup_username', [identifierKey(username)]))
    return { account_id, actor_id, cookie, open_signup }
  })
}

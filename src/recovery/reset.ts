import { z } from 'zod'
import { endCredentials } from '../accounts/ending.ts'
import { Password } from '../accounts/formats.ts'
import { lockAccounts } from '../accounts/locks.ts'
import { clearLogins, loginBuckets } from '../accounts/login-buckets.ts'
import { refuseWeak } from '../accounts/new-password.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { type RouteContext, route } from '../core/route.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { refusal } from '../errors.ts'
import { crowdOf } from '../limits/limiters.ts'
import { type Found, findTicket, redeeming, TicketToken, useTicket } from '../tickets/redeem.ts'

const auth = { account: 'none', actor: 'none' } as const
type Context = RouteContext<typeof auth>

/** `POST /reset`: sets the password by a link. Opens no session, so that signing in still takes every factor. */
export const reset = route({
  doc: 'Set a new password with the token of a link. All sessions and tokens of the account end; sign in again.',
  method: 'POST',
  path: '/reset',
  auth,
  checksOrigin: true,
  rate_limit: { ip: 'ticket_ip' },
  input: z.strictObject({ token: TicketToken, password: Password }),
  output: z.object({ ok: z.literal(true), sessions_revoked: z.int(), tokens_revoked: z.int() }),
  errors: ['rate_limited', 'busy', 'ticket_not_found'],
  async handler({ token, password }, context) {
    const { app, ip } = context
    const given = ['password', password] as const
    refuseWeak(app, 'invalid_request_body', given)
    return await redeeming(
      context,
      async () => {
        const found = await findTicket(app, token, ['password_reset'])
        const { username, account_email: email } = found
        refuseWeak(app, 'invalid_request_body', given, { username: username as string, email })
        const hash = await app.passwords.hash(password, crowdOf(ip))
        return { body: { ok: true as const, ...(await setPassword(context, found, hash)) } }
      },
      () => recordMiss(context),
    )
  },
})

async function setPassword({ app, ip }: Context, ticket: Found, hash: string) {
  const account_id = ticket.account_id as string
  const nobody = callerSubject({ account: null }, ip)
  return await mutate(app, 'password_reset', { subject: nobody }, async (work) => {
    const { db, audit, afterCommit } = work
    const account = (await lockAccounts(db, [account_id])).get(account_id)
    if (!account) throw refusal('ticket_not_found')
    await useTicket(db, ticket)
    // A mailed link proves the address; a revealed one carries none.
    await db.run(sql`
      update account set password_hash = ${hash}, hash_foreign = false, updated_at = now(), updated_by = null,
        email_verified = email_verified or ${ticket.email_key !== null}
      where id = ${account_id}::uuid`)
    const ended = await endCredentials(db, account_id)
    await notify(app, work, account_id, 'password_changed')
    const keys = await loginBuckets(db, account)
    audit('password_reset', { ticket_id: ticket.id, ...ended }, { target_account_id: account_id })
    afterCommit(() => clearLogins(app, keys))
    return ended
  })
}

const recordMiss = ({ app, ip }: Context): Promise<void> =>
  app.audit.failure({
    event_type: 'password_reset',
    outcome: 'failure',
    ...callerSubject({ account: null }, ip),
    metadata: { reason: 'ticket_not_found' },
  })

import { z } from 'zod'
import { lockLiveAccount } from '../accounts/locks.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { route } from '../core/route.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { findTicket, redeeming, TicketToken, useTicket } from '../tickets/redeem.ts'
import { writeEmail } from './write-email.ts'

/** `POST /email_confirm`: the link proves the mailbox; no session is needed, and none is opened. */
export const email_confirm = route({
  doc: 'Confirm an e-mail with the link that was mailed to it. It becomes the verified e-mail of the account.',
  method: 'POST',
  path: '/email_confirm',
  auth: { account: 'none', actor: 'none' },
  checksOrigin: true,
  rate_limit: { ip: 'ticket_ip' },
  enabled: ({ config }) => config.mail !== 'off',
  input: z.strictObject({ token: TicketToken }),
  output: z.object({ ok: z.literal(true) }),
  errors: ['rate_limited', 'ticket_not_found', 'email_taken'],
  async handler({ token }, context) {
    const { app, ip } = context
    return await redeeming(context, async () => {
      const ticket = await findTicket(app, token, ['email_verify', 'email_change'])
      const { id: ticket_id, purpose, email } = ticket
      const account_id = ticket.account_id as string
      const subject = { ...callerSubject({ account: { id: account_id } }, ip), target_account_id: account_id }
      await mutate(app, 'account_update', { subject }, async ({ audit, ...work }) => {
        const own = await lockLiveAccount(work.db, account_id, () => refusal('ticket_not_found'))
        await useTicket(work.db, ticket)
        if (purpose === 'email_change')
          await writeEmail(app, work, own, { email, verified: true, by: null }, refusal)
        else
          await work.db.run(sql`
            update account set email_verified = true, updated_at = now(), updated_by = null
            where id = ${account_id}::uuid`)
        audit('account_update', {
          change: purpose === 'email_change' ? 'email' : 'email_verified',
          ticket_id,
        })
      })
      return { body: { ok: true as const } }
    })
  },
})

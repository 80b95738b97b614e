import { z } from 'zod'
import { route } from '../core/route.ts'
import { ticketPurposes } from '../registry/messages.ts'
import { findTicket, redeeming, TicketToken } from './redeem.ts'

/** `POST /ticket`: what a link is for, so that its page can say so before the button is pressed. Uses nothing up. */
export const ticket = route({
  doc: 'What a link is for: its purpose and account or, for an invite, the username and e-mail that it requires. This does not use up the link.',
  method: 'POST',
  path: '/ticket',
  auth: { account: 'none', actor: 'none' },
  checksOrigin: true,
  rate_limit: { ip: 'ticket_ip' },
  input: z.strictObject({ token: TicketToken }),
  output: z.object({
    purpose: z.enum(ticketPurposes),
    username: z.string().nullable(),
    email: z.string().nullable(),
    expires_at: z.string(),
  }),
  errors: ['rate_limited', 'ticket_not_found'],
  handler: ({ token }, context) =>
    redeeming(context, async () => {
      const { purpose, username, email, expires_at } = await findTicket(context.app, token, ticketPurposes)
      return { body: { purpose, username, email: purpose === 'invite' ? email : null, expires_at } }
    }),
})

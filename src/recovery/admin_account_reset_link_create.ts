import { z } from 'zod'
import { lockLiveAccount } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { account, operation } from '../core/operation.ts'
import { freshAdmin, lockTarget } from '../sign-in/privileged.ts'
import { Ticket } from '../tickets/tickets.ts'
import { Uuid } from '../wire/types.ts'
import { makeResetLink } from './reset-link.ts'

export const admin_account_reset_link_create = mutation({
  doc: 'Make a link to set a new password: mailed to the account or, with `reveal`, returned once. Not for holders of keeper or admin.',
  auth: freshAdmin,
  event: 'ticket_create',
  secret_reply: true,
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid, reveal: z.boolean().default(false) }),
  output: z.object({ ok: z.literal(true), ticket: Ticket, link: z.string().nullable() }),
  errors: ['authentication_required', 'account_not_found', 'privileged_target', 'no_recipient'],
  async handler({ account_id, reveal }, { app, account, actor, credential, ...work }) {
    const target = await lockTarget(app, work.db, 'ticket_create', account_id, { account, credential, actor })
    const made = await makeResetLink(app, work, target, {
      reveal,
      created_by: actor.id,
      detail: { credential_type: credential.type },
    })
    return { ok: true as const, ...made }
  },
})

export const createResetLink = operation({
  doc: 'Make a link to set a new password for an account, to be shown once or mailed.',
  input: z.strictObject({ account_id: Uuid, send: z.boolean().default(false) }),
  event: 'ticket_create',
  errors: ['account_not_found', 'no_recipient'],
  async handler({ account_id, send }, { app, by: created_by, detail, fail, ...work }) {
    const target = await lockLiveAccount(work.db, account_id, fail)
    return await makeResetLink(app, work, target, { reveal: !send, created_by, detail })
  },
  command: {
    name: 'account reset-link',
    args: { account_id: account, send: '--send' },
    details:
      'Prints the link or, with --send, mails it. The link works once, within 24 hours. Pass it on over a channel that you\ntrust.',
    phrase: ({ link, ticket }, { who }) =>
      link ?? `A link was sent to ${who}; it works until ${ticket.expires_at}.`,
  },
})

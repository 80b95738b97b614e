import { z } from 'zod'
import type { App } from '../core/app.ts'
import { mutation } from '../core/declare.ts'
import type { Fail, Work } from '../core/mutate.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { canMail } from '../delivery/outbox.ts'
import type { NewTicket } from '../tickets/tickets.ts'
import { Uuid } from '../wire/types.ts'
import { makeInviteLink, refuseReveal } from './invite-link.ts'
import { Invite, inviteColumns, isOpenInvite } from './invites.ts'

const Input = z.strictObject({ invite_id: Uuid, reveal: z.boolean().optional() })
type Input = z.output<typeof Input>

const refine = (input: Input, { app }: { app: App }): Input => {
  refuseReveal(app.config, input.reveal)
  return input
}

export const invite_send = mutation({
  doc: 'Mail an open invite again with a new link, or return the link once with `reveal`. The three newest links work.',
  auth: { role: 'admin' },
  event: 'ticket_create',
  secret_reply: true,
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: Input,
  output: z.object({ ok: z.literal(true), invite: Invite, link: z.string().nullable() }),
  errors: ['invite_not_found', 'no_recipient'],
  refine,
  async handler(input, { app, actor, credential, fail, ...work }) {
    const by = { created_by: actor.id, detail: { credential_type: credential.type } }
    return { ok: true as const, ...(await sendAgain(app, work, input, by, fail)) }
  },
})

async function sendAgain(
  app: App,
  work: Pick<Work, 'db' | 'audit' | 'afterCommit'>,
  { invite_id, reveal }: Input,
  by: Pick<NewTicket, 'created_by' | 'detail'>,
  fail: Fail<'invite_not_found' | 'no_recipient'>,
): Promise<{ invite: Invite; link: string | null }> {
  const invite = await work.db.first<Invite>(sql`
    select ${inviteColumns} from invite i
    where i.id = ${invite_id}::uuid and ${isOpenInvite} for update`)
  if (!invite) throw fail('invite_not_found')
  if (!reveal && !canMail(app, invite.email)) throw fail('no_recipient')
  return { invite, link: await makeInviteLink(app, work, invite, { reveal }, by) }
}

export const sendInvite = operation({
  doc: 'Mail an open invite again with a new link, or reveal the link.',
  input: Input,
  event: 'ticket_create',
  errors: ['invite_not_found', 'no_recipient'],
  refine,
  handler: (input, { app, by: created_by, detail, fail, ...work }) =>
    sendAgain(app, work, input, { created_by, detail }, fail),
  command: {
    name: 'invite send',
    args: { invite_id: 'INVITE', reveal: '--reveal' },
    phrase: ({ link, invite }) => link ?? `The invite was sent to ${invite.email}.`,
  },
})

import { emailKey, fold } from '../accounts/formats.ts'
import type { Config } from '../config/config.ts'
import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { canMail } from '../delivery/outbox.ts'
import { refusal } from '../errors.ts'
import { makeTicket, type NewTicket } from '../tickets/tickets.ts'
import { issue } from '../wire/issues.ts'
import type { Invite } from './invites.ts'

/** Whether the inviter wants the link mailed or revealed. */
export type Linked = {
  send?: boolean | undefined
  reveal?: boolean | undefined
  locale?: string | undefined
}

/** How long the link of an invite works; `invite_send` makes another. */
const seconds = 14 * 86_400

/** If only mailed tokens count, a revealed one would be of no use. */
export function refuseReveal({ invite_claim }: Config, reveal: boolean | undefined): void {
  if (reveal && invite_claim === 'verified_email')
    throw refusal('invalid_params', { issues: [issue(['reveal'], 'invalid_value')] })
}

/**
 * Makes the link of a locked invite: mailed; or revealed if that is asked for, or if signup requires a link and none is
 * mailed. Returns a revealed link, to be shown once.
 */
export async function makeInviteLink(
  app: App,
  work: Pick<Work, 'db' | 'audit' | 'afterCommit'>,
  { id: invite_id, email, expires_at }: Invite,
  { send, reveal, locale }: Linked,
  by: Pick<NewTicket, 'created_by' | 'detail'>,
): Promise<string | null> {
  const own = { ...by, purpose: 'invite', invite_id, seconds, until: expires_at } as const
  if (!reveal && (send ?? true) && canMail(app, email)) {
    const address = { email, email_key: fold(email), locale }
    await makeTicket(app, work, { ...own, ...address, delivery: 'mailed' })
    return null
  }
  if (!reveal && app.config.invite_claim !== 'code') return null
  const email_key = emailKey(email)
  const { link } = await makeTicket(app, work, { ...own, delivery: 'revealed', email, email_key })
  return link
}

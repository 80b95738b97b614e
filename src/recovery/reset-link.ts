import type { LockedAccount } from '../accounts/locks.ts'
import type { Config } from '../config/config.ts'
import type { App } from '../core/app.ts'
import { recorded, type Work } from '../core/mutate.ts'
import { onlyVia } from '../core/operate.ts'
import { canMail } from '../delivery/outbox.ts'
import { refusal } from '../errors.ts'
import { makeTicket, type NewTicket, type Ticket } from '../tickets/tickets.ts'

/** Whether people may have a link mailed to them to set a new password. */
export const hasRecovery = ({ recovery, mail }: Config): boolean => recovery && mail !== 'off'

/** Longer than `reset_seconds`, because an admin or operator has to pass the link on. */
const seconds = 86_400

/**
 * Makes a link to set a new password for a locked account: mailed, or revealed once to the caller. Refuses with
 * `no_recipient` if it cannot be mailed.
 */
export async function makeResetLink(
  app: App,
  work: Pick<Work, 'db' | 'audit' | 'afterCommit'>,
  { id: account_id, email, email_key }: LockedAccount,
  { reveal, created_by, detail }: { reveal: boolean } & Pick<NewTicket, 'created_by' | 'detail'>,
): Promise<{ ticket: Ticket; link: string | null }> {
  const purpose = 'password_reset'
  const own = { purpose, account_id, created_by, detail, seconds } as const
  if (reveal)
    return await makeTicket(app, work, { ...own, delivery: 'revealed', email: null, email_key: null })
  const reason = 'no_recipient'
  if (!canMail(app, email))
    throw recorded(
      'ticket_create',
      refusal(reason),
      { reason, ...onlyVia(detail) },
      { target_account_id: account_id },
    )
  const sent = await makeTicket(app, work, { ...own, delivery: 'mailed', email, email_key })
  return { ticket: sent.ticket, link: null }
}

import { z } from 'zod'
import { failureFloor } from '../auth/failure-floor.ts'
import { sha256Hex } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import type { Attempt } from '../core/route.ts'
import { type Queryable, sql } from '../db/db.ts'
import { hasReason, refusal } from '../errors.ts'
import type { TicketPurpose } from '../registry/messages.ts'
import { isOpen } from './tickets.ts'

/** Any text: an unknown token gets the same answer as one that is used up. */
export const TicketToken = z.string().max(200)

/** What a token leads to: the ticket, and its account or invite. */
export type Found = {
  id: string
  purpose: TicketPurpose
  account_id: string | null
  invite_id: string | null
  delivery: 'mailed' | 'revealed'
  email: string | null
  email_key: string | null
  expires_at: string
}
/** Also has the username of its account, or the one that its invite asks for, and the e-mail of its account. */
export type FoundWithNames = Found & { username: string | null; account_email: string | null }

const foundColumns = sql`t.id, t.purpose, t.account_id, t.invite_id, t.delivery, t.email, t.email_key, t.expires_at`

/**
 * The open ticket of a token, if it has one of these purposes. It is not locked: to use it, lock its account or invite
 * and call `useTicket`. Its account is live and, unless the purpose is `email_change`, still has its address.
 */
export async function findTicket(
  { db }: Pick<App, 'db'>,
  token: string,
  purposes: readonly TicketPurpose[],
): Promise<FoundWithNames> {
  const found = await db.readOnly.first<FoundWithNames>(sql`
    select ${foundColumns}, coalesce(account.username, invite.username) as username, account.email as account_email from account_ticket t
      left join account on account.id = t.account_id left join invite on invite.id = t.invite_id
    where t.token_hash = ${sha256Hex(token)} and t.purpose = any(${[...purposes]}::text[]) and ${isOpen}
      and case when t.invite_id is null then account.deleted_at is null and ${isAddressed}
        else invite.claimed_at is null and (invite.expires_at is null or invite.expires_at > now()) end`)
  if (!found) throw refusal('ticket_not_found')
  return found
}

/** A mailed ticket proves an address, so it ends when the account gets another; a revealed one carries none. */
const isAddressed = sql`(t.purpose = 'email_change' or t.email_key is null or t.email_key = account.email_key)`

/**
 * Uses a ticket up, in the transaction of its effect. The caller holds the lock of its live account, or of its
 * open invite. Refuses with `ticket_not_found` if it has ended since it was found.
 */
export async function useTicket(db: Queryable, { id, account_id }: Found): Promise<void> {
  const used = await db.run(sql`
    update account_ticket t set used_at = now() where t.id = ${id}::uuid and ${isOpen}
      and (t.account_id is null or exists (
        select from account where account.id = ${account_id}::uuid and deleted_at is null and ${isAddressed}))`)
  if (used === 0) throw refusal('ticket_not_found')
}

/**
 * Runs the handler of a route that takes a token. All tokens that fail get the same answer, after the same time, and
 * are charged to the client address. `onMiss` records the failure.
 */
export async function redeeming<T>(
  { app, attempt }: { app: App; attempt: Attempt },
  work: () => Promise<T>,
  onMiss?: () => Promise<void>,
): Promise<T> {
  let floor: Promise<void> | undefined
  try {
    return await attempt(['ticket_not_found'], async (hold) => {
      await hold.ip()
      floor = failureFloor(app.config)
      return await work()
    })
  } catch (error) {
    // Wait outside the attempt, so that the failure is charged at once and not after the floor.
    if (hasReason(error, 'ticket_not_found')) {
      await onMiss?.()
      await floor
    }
    throw error
  }
}

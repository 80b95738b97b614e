import { emailKey } from '../accounts/formats.ts'
import type { Config } from '../config/config.ts'
import { type Queryable, sql } from '../db/db.ts'
import { isOpenInvite } from '../invites/invites.ts'
import type { Flow } from '../sign-in/flow.ts'
import { isOpen } from '../tickets/tickets.ts'

/** Stored in a flow whose token leads to no invite that it may claim. */
export const noInvite = '00000000-0000-0000-0000-000000000000'

export type Invited = { id: string; username: string | null; created_by: string | null }

/**
 * Locks the open invite that admits the owner of a verified address: the one that a token has named, while that very
 * link is open; or, unless tokens are required, the oldest one for the address. The transaction uses the link up.
 */
export async function lockInvite(
  db: Queryable,
  { invite_claim }: Config,
  {
    invite_id,
    challenge: ticket_id,
    email,
  }: Pick<Flow, 'invite_id' | 'challenge'> & { email: string | null },
): Promise<Invited | undefined> {
  if (invite_id === null && (email === null || invite_claim === 'code')) return undefined
  const email_key = emailKey(email)
  const chosen =
    invite_id === null
      ? sql`i.email_key = ${email_key}`
      : sql`i.id = ${invite_id}::uuid and (i.email_key is null or i.email_key = ${email_key})`
  const invite = await db.first<Invited>(sql`
    select i.id, i.username, i.created_by from invite i
    where ${chosen} and ${isOpenInvite}
    order by i.created_at, i.id limit 1 for update`)
  if (!invite || invite_id === null) return invite
  // Links end under the lock of their invite, so what is read after taking it stays true.
  const link = await db.first(sql`
    update account_ticket t set used_at = now()
    where t.id = ${ticket_id}::uuid and t.invite_id = ${invite_id}::uuid and t.purpose = 'invite' and ${isOpen}
      and (t.delivery = 'mailed' or ${invite_claim !== 'verified_email'})
    returning true`)
  return link ? invite : undefined
}

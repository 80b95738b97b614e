import { z } from 'zod'
import { emailKey } from '../accounts/formats.ts'
import { sha256Hex } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { isOpen } from '../tickets/tickets.ts'
import { Uuid } from '../wire/types.ts'

/** Wire form of an invite. */
export const Invite = z.object({
  id: Uuid,
  email: z.string().nullable(),
  username: z.string().nullable(),
  expires_at: z.string().nullable(),
  /** The account that signed up with it; null again after that account is purged. */
  claimed_by: Uuid.nullable(),
  claimed_at: z.string().nullable(),
  created_at: z.string(),
  created_by: Uuid.nullable(),
})
export type Invite = z.output<typeof Invite>

/** Columns of `invite i`. */
export const inviteColumns = sql`i.id, i.email, i.username, i.expires_at, i.claimed_by, i.claimed_at,
  i.created_at, i.created_by`

/** `invite i` is neither claimed nor expired. */
export const isOpenInvite = sql`i.claimed_at is null and (i.expires_at is null or i.expires_at > now())`

/**
 * Finds and locks the oldest invite that a signup may claim without a token. If it waits for a claim or a deletion, it
 * sees the outcome.
 */
const lockMatchingInvite = (
  db: Queryable,
  applicant: Applicant,
): Promise<Pick<Invite, 'id' | 'created_by'> | undefined> =>
  // The `or` lets the two unique indexes find candidates; the conditions after it decide.
  db.first(sql`
    select i.id, i.created_by from invite i
    where (i.username = ${applicant.username} or i.email_key = ${emailKey(applicant.email)})
      and ${isOpenFor(applicant)}
    order by i.created_at, i.id limit 1 for update`)

type Applicant = { username: string; email: string | null }

/** `invite i` is open, and every identifier that it has is the applicant's. */
const isOpenFor = ({ username, email }: Applicant): Sql => sql`${isOpenInvite}
  and (i.username is null or i.username = ${username}) and (i.email_key is null or i.email_key = ${emailKey(email)})`

export type Claimable = Pick<Invite, 'id' | 'created_by'> & {
  /** The token was mailed to the address that the applicant submitted. */
  email_verified: boolean
}

/**
 * Finds and locks the invite that a signup may claim, by its token if one is given. The identifiers of the invite must
 * match the applicant even then. The transaction uses the token up. Undefined if anything does not match.
 */
export async function lockInviteFor(
  { config: { invite_claim } }: Pick<App, 'config'>,
  db: Queryable,
  applicant: Applicant,
  token: string | null,
): Promise<Claimable | undefined> {
  if (token !== null) return await lockInviteOf(db, token, applicant, invite_claim === 'verified_email')
  if (invite_claim !== 'match') return undefined
  const invite = await lockMatchingInvite(db, applicant)
  return invite && { ...invite, email_verified: false }
}

async function lockInviteOf(
  db: Queryable,
  token: string,
  applicant: Applicant,
  mailedOnly: boolean,
): Promise<Claimable | undefined> {
  const token_hash = sha256Hex(token)
  const invite = await db.first<Pick<Invite, 'id' | 'created_by'>>(sql`
    select i.id, i.created_by from invite i
    where i.id = (select invite_id from account_ticket where token_hash = ${token_hash}) and ${isOpenFor(applicant)}
    for update`)
  if (!invite) return undefined
  // Tickets of an invite are used and voided under the lock of the invite.
  const used = await db.first<{ email_verified: boolean }>(sql`
    update account_ticket t set used_at = now()
    where t.token_hash = ${token_hash} and ${isOpen} and (t.delivery = 'mailed' or not ${mailedOnly}::boolean)
    returning t.delivery = 'mailed' and coalesce(t.email_key = ${emailKey(applicant.email)}, false) as email_verified`)
  return used && { ...invite, ...used }
}

/**
 * Claims a locked invite and ends its other links. A claim is never undone. False if the invite expired while the
 * transaction waited for locks.
 */
export async function claimInvite(db: Queryable, invite_id: string, account_id: string): Promise<boolean> {
  const claimed = await db.run(sql`
    with others as (
      update account_ticket t set voided_at = now() where t.invite_id = ${invite_id}::uuid and ${isOpen}
    )
    update invite set claimed_by = ${account_id}::uuid, claimed_at = now()
    where id = ${invite_id}::uuid and (expires_at is null or expires_at > statement_timestamp())`)
  return claimed > 0
}

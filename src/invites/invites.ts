import { z } from 'zod'
import { fold } from '../accounts/formats.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'

/** Wire form of an invite (contract 2, section 2). */
export const Invite = z.object({
  id: Uuid,
  email: z.string().nullable(),
  username: z.string().nullable(),
  expires_at: z.string().nullable(),
  /** The account that signed up with it; null again once that account is purged. */
  claimed_by: Uuid.nullable(),
  claimed_at: z.string().nullable(),
  created_at: z.string(),
  created_by: Uuid.nullable(),
})
export type Invite = z.output<typeof Invite>

/** Of `invite i`. */
export const inviteColumns = sql`i.id, i.email, i.username, i.expires_at, i.claimed_by, i.claimed_at,
  i.created_at, i.created_by`

/** The metadata key of audit rows of operator and library calls; none for requests. */
export type Via = { via?: string }

/**
 * Finds and locks the invite that a signup may claim: unclaimed, unexpired, and each identifier that it
 * carries is the submitted one; the oldest of several. Whoever waited for a claim or a deletion sees its
 * outcome.
 */
export const lockMatchingInvite = (
  db: Queryable,
  { username, email }: { username: string; email: string | null },
): Promise<Pick<Invite, 'id' | 'created_by'> | undefined> => {
  const email_key = email === null ? null : fold(email)
  // The first `or` finds by the two unique indexes; the lines below it say what matches.
  return db.first(sql`
    select id, created_by from invite
    where claimed_at is null and (username = ${username} or email_key = ${email_key})
      and (username is null or username = ${username})
      and (email_key is null or email_key = ${email_key})
      and (expires_at is null or expires_at > now())
    order by created_at, id limit 1 for update`)
}

/** Claims a locked invite, once and for ever. */
export async function claimInvite(db: Queryable, invite_id: string, account_id: string): Promise<void> {
  await db.run(sql`
    update invite set claimed_by = ${account_id}::uuid, claimed_at = now() where id = ${invite_id}::uuid`)
}

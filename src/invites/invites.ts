import { z } from 'zod'
import { fold } from '../accounts/formats.ts'
import { type Queryable, sql } from '../db/db.ts'
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

/** Metadata of audit rows for operator and library calls; left out for requests. */
export type Via = { via?: string }

/**
 * Finds and locks the oldest invite that a signup may claim: unclaimed, unexpired, and every identifier that it
 * has equals the submitted one. If it waits for a claim or a deletion, it sees the outcome.
 */
export const lockMatchingInvite = (
  db: Queryable,
  { username, email }: { username: string; email: string | null },
): Promise<Pick<Invite, 'id' | 'created_by'> | undefined> => {
  const email_key = email === null ? null : fold(email)
  // The first `or` lets the two unique indexes find candidates; the conditions below it decide.
  return db.first(sql`
    select id, created_by from invite
    where claimed_at is null and (username = ${username} or email_key = ${email_key})
      and (username is null or username = ${username})
      and (email_key is null or email_key = ${email_key})
      and (expires_at is null or expires_at > now())
    order by created_at, id limit 1 for update`)
}

/** Claims a locked invite. A claim is never undone. */
export async function claimInvite(db: Queryable, invite_id: string, account_id: string): Promise<void> {
  await db.run(sql`
    update invite set claimed_by = ${account_id}::uuid, claimed_at = now() where id = ${invite_id}::uuid`)
}

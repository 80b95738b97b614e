import { z } from 'zod'
import { hasPassword } from '../auth/password.ts'
import type { Fail } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { brokenConstraint } from '../db/servers/failure.ts'
import { hasReason } from '../errors.ts'
import { Uuid } from '../wire/types.ts'
import { emailKey, foldName } from './formats.ts'
import { refuseReserved, refuseTakenUsername } from './usernames.ts'

/** Wire form of an account, as its owner sees it. */
export const SessionAccount = z.object({
  id: Uuid,
  username: z.string(),
  email: z.string().nullable(),
  email_verified: z.boolean(),
  created_at: z.string(),
})

/** Wire form of an account, as admins see it. */
export const AdminAccount = SessionAccount.extend({
  created_by: Uuid.nullable(),
  updated_at: z.string(),
  updated_by: Uuid.nullable(),
  deleted_at: z.string().nullable(),
  deleted_by: Uuid.nullable(),
})

export const adminAccountColumns = sql`id, username, email, email_verified, created_at, created_by, updated_at,
  updated_by, deleted_at, deleted_by, ${hasPassword} as has_password`

/**
 * For the `catch` of a write: refuses a taken e-mail as `email_taken`. Use it inside the transaction; outside,
 * the constraint violation has already been audited as an unexpected error.
 */
export const refuseTakenEmail =
  (fail: Fail<'email_taken'>) =>
  (error: unknown): never => {
    throw brokenConstraint(error) === 'account_email_key' ? fail('email_taken') : error
  }

export type NewAccount = {
  username: string
  email: string | null
  /** Default: false. */
  email_verified?: boolean
  password_hash: string
  /** Default: the username. */
  actor_name?: string
  created_by: string | null
}

/**
 * Inserts an account with its first actor, inside the caller's transaction. Refuses a taken or reserved username with
 * `username_taken`; a taken e-mail throws a violation of the constraint `account_email_key`.
 */
export async function insertAccount(
  db: Queryable,
  { username, email, email_verified = false, password_hash, actor_name = username, created_by }: NewAccount,
): Promise<{ account_id: string; actor_id: string }> {
  const made = await db
    .one<{ account_id: string; actor_id: string }>(sql`
      with made as (
        insert into account (username, email, email_key, email_verified, password_hash, created_by)
        values (${username}, ${email}, ${emailKey(email)}, ${email_verified}, ${password_hash},
          ${created_by})
        returning id
      )
      insert into actor (account_id, name, name_key)
      select id, ${actor_name}, ${foldName(actor_name)} from made
      returning account_id, id as actor_id`)
    .catch(refuseTakenUsername)
  await refuseReserved(db, username, made.account_id)
  return made
}

/** Whether `insertAccount` failed because the username or the e-mail is taken; refusals do not tell which. */
export const isTaken = (error: unknown): boolean =>
  hasReason(error, 'username_taken') || brokenConstraint(error) === 'account_email_key'

import { refuseTakenEmail } from '../accounts/accounts.ts'
import { emailKey } from '../accounts/formats.ts'
import type { LockedAccount } from '../accounts/locks.ts'
import type { App } from '../core/app.ts'
import type { Fail, Work } from '../core/mutate.ts'
import { onlyVia, type Via } from '../core/operate.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { voidTickets } from '../tickets/tickets.ts'

export type NewEmail = {
  email: string | null
  verified: boolean
  /** The actor who sets it; null for the owner of the account. */
  by: string | null
}

/**
 * Gives a locked account another e-mail, or none. Notifies the owner at the old address, and ends the links that were
 * mailed for the account and every change of address that was asked for before. Refuses with `email_taken`.
 */
export async function writeEmail(
  app: App,
  work: Pick<Work, 'db' | 'afterCommit'>,
  { id: account_id, email: old }: Pick<LockedAccount, 'id' | 'email'>,
  { email, verified, by }: NewEmail,
  fail: Fail<'email_taken'>,
): Promise<void> {
  const email_key = emailKey(email)
  // Refused before the write could wait: two accounts that get each other's address would deadlock.
  const taken = await work.db.first(sql`
    select from account where email_key = ${email_key} and id <> ${account_id}::uuid`)
  if (taken) throw fail('email_taken')
  if (emailKey(old) !== email_key) await notify(app, work, account_id, 'email_changed')
  const set = sql`
    update account set email = ${email}, email_key = ${email_key},
      email_verified = ${verified}, updated_at = now(), updated_by = ${by}::uuid
    where id = ${account_id}::uuid`
  await work.db.run(set).catch(refuseTakenEmail(fail))
  await work.db.run(voidTickets(account_id, ['password_reset', 'email_verify', 'email_change']))
}

/**
 * Gives a locked account the e-mail that an admin or operator chose, with an audit row; false if it already has that
 * one. Even then no link to another address works any more: it would undo the choice.
 */
export async function assignEmail(
  app: App,
  work: Pick<Work, 'db' | 'audit' | 'afterCommit'>,
  account: LockedAccount,
  { via, ...set }: NewEmail & Via,
  fail: Fail<'email_taken'>,
): Promise<boolean> {
  const { email, verified } = set
  const isSame = email === account.email && emailKey(email) === account.email_key
  if (isSame && verified === account.email_verified) {
    await work.db.run(voidTickets(account.id, ['email_change']))
    return false
  }
  await writeEmail(app, work, account, set, fail)
  const change =
    email === null ? 'email_cleared' : email === account.email && verified ? 'email_verified' : 'email'
  work.audit('account_update', { change, ...onlyVia({ via }) }, { target_account_id: account.id })
  return true
}

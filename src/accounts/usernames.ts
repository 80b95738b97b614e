import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { onlyVia, type Via } from '../core/operate.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { brokenConstraint } from '../db/servers/failure.ts'
import { notify } from '../delivery/notify.ts'
import { refusal } from '../errors.ts'
import type { LockedAccount } from './locks.ts'

const reserved = sql`username_reservation r where (r.until is null or r.until > statement_timestamp())`

/** Whether the name is reserved for any account. */
export const isReserved = (username: string | Sql | null): Sql =>
  sql`exists (select from ${reserved} and r.username = ${username})`

/**
 * For the `catch` of a write: refuses a taken username. Use it inside the transaction; outside, the constraint
 * violation has already been audited as an unexpected error.
 */
export function refuseTakenUsername(error: unknown): never {
  throw brokenConstraint(error) === 'account_username_key' ? refusal('username_taken') : error
}

/**
 * Refuses former usernames of other accounts. Call it after the rows of the accounts are written, in a statement of its
 * own: a write that waited for a rename then sees the reservation made by that rename.
 */
export async function refuseReserved(db: Queryable, username: string, account_id: string): Promise<void> {
  const other = await db.first(sql`
    select from ${reserved} and r.username = ${username} and r.account_id <> ${account_id}::uuid`)
  if (other) throw refusal('username_taken')
}

/** Gives a locked account another username and reserves the old one for it. False if it already has that name. */
export async function rename(
  app: App,
  work: Pick<Work, 'db' | 'audit' | 'afterCommit'>,
  { id, username: former }: LockedAccount,
  username: string,
  { by, via }: Via & { by: string | null },
): Promise<boolean> {
  if (username === former) return false
  const { db, audit } = work
  // Refused before the write could wait: two accounts that want each other's name would deadlock.
  if (await db.first(sql`select from account where username = ${username}`)) throw refusal('username_taken')
  await db
    .run(sql`
      update account set username = ${username}, updated_at = now(), updated_by = ${by}::uuid
      where id = ${id}::uuid`)
    .catch(refuseTakenUsername)
  await refuseReserved(db, username, id)
  await db.run(sql`
    insert into username_reservation (username, account_id, until)
    values (${former}, ${id}::uuid, now() + make_interval(days => ${app.config.username_reserve_days}::int))
    on conflict (username) do update set account_id = excluded.account_id, until = excluded.until`)
  await notify(app, work, id, 'username_changed')
  audit('account_update', { change: 'username', ...onlyVia({ via }) }, { target_account_id: id })
  return true
}

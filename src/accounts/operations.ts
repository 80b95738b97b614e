import { z } from 'zod'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { issue } from '../core/issues.ts'
import { accountKey, identifierKey, keyAt } from '../core/limiters.ts'
import { type Operator, operate } from '../core/operate.ts'
import { Uuid } from '../core/wire.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { knownAddresses } from '../sessions/addresses.ts'
import { deleteAccount as deleteUnderLock } from './account_delete.ts'
import { purgeAccount as purgeUnderLock } from './account_purge.ts'
import { undeleteAccount as undeleteUnderLock } from './account_undelete.ts'
import { refuseTakenEmail } from './accounts.ts'
import { type EndedCredentials, endCredentials, onlyVia } from './ending.ts'
import { Email, fold, Password } from './formats.ts'
import { lockLiveAccount } from './locks.ts'

/**
 * What operator commands and library calls change on an account (contract 2, section 19). Where nothing
 * else is said they refuse a missing or deleted account with `account_not_found`.
 */

const Target = z.strictObject({ account_id: Uuid })
type Target = z.input<typeof Target>

const PasswordInput = Target.extend({ password: Password })

/** A new password; every session and token of the account ends. */
export async function setPassword(
  app: App,
  input: z.input<typeof PasswordInput>,
  operator: Operator,
): Promise<EndedCredentials> {
  const { account_id, password } = parseInput(PasswordInput, input)
  const password_hash = await app.passwords.hash(password)
  return await operate(app, 'password_change', operator, async ({ db, audit, detail }) => {
    await lockLiveAccount(db, account_id)
    await update(db, account_id, sql`password_hash = ${password_hash}`, operator)
    const ended = await endCredentials(db, account_id)
    audit('password_change', { ...ended, ...detail }, { target_account_id: account_id })
    return ended
  })
}

const EmailInput = Target.extend({ email: Email.nullable() })

/** Another e-mail, or none; it counts as unverified. Refuses with `email_taken`. */
export async function setEmail(
  app: App,
  input: z.input<typeof EmailInput>,
  operator: Operator,
): Promise<void> {
  const { account_id, email } = parseInput(EmailInput, input)
  const email_key = email === null ? null : fold(email)
  await operate(app, 'account_update', operator, async ({ db, audit, detail }) => {
    await lockLiveAccount(db, account_id)
    const change = sql`email = ${email}, email_key = ${email_key}, email_verified = false`
    await update(db, account_id, change, operator).catch(refuseTakenEmail)
    audit('account_update', { change: 'email', ...onlyVia(detail) }, { target_account_id: account_id })
  })
}

/** Marks the e-mail as verified; once it is, nothing changes. An account without one is refused as input. */
export async function verifyEmail(
  app: App,
  input: Target,
  operator: Operator,
): Promise<{ changed: boolean }> {
  const { account_id } = parseInput(Target, input)
  return await operate(app, 'account_update', operator, async ({ db, audit, detail }) => {
    const { email } = await lockLiveAccount(db, account_id)
    if (email === null)
      throw refusal('invalid_params', {
        issues: [issue(['account_id'], 'custom', 'The account has no e-mail to verify.')],
      })
    const done = await db.run(sql`
      update account set email_verified = true, updated_at = now(), updated_by = ${operator.actor_id ?? null}::uuid
      where id = ${account_id}::uuid and not email_verified`)
    if (done > 0)
      audit(
        'account_update',
        { change: 'email_verified', ...onlyVia(detail) },
        { target_account_id: account_id },
      )
    return { changed: done > 0 }
  })
}

/**
 * Forgets the failed logins of the account under its username, e-mail and id, from everywhere and from the
 * addresses it knows. With the limiter store `memory` that reaches the limiters of this process only.
 */
export async function unlockAccount(app: App, input: Target, operator: Operator): Promise<void> {
  const { account_id } = parseInput(Target, input)
  const keys = await operate(app, 'account_update', operator, async ({ db, audit, detail }) => {
    const { username, email } = await lockLiveAccount(db, account_id)
    const names = email === null ? [username] : [username, fold(email)]
    audit('account_update', { change: 'unlock', ...onlyVia(detail) }, { target_account_id: account_id })
    const addresses = await knownAddresses(db, account_id)
    const buckets = [...names.map(identifierKey), accountKey(account_id)]
    return buckets.flatMap((bucket) => [bucket, ...addresses.map((address) => keyAt(bucket, address))])
  })
  const clear = () => app.limiters.clear('login_account', keys)
  // Otherwise not an effect, whose failure nobody would hear of: to clear is all that this call is for.
  if (operator.within) operator.within.afterCommit(clear)
  else await clear()
}

/**
 * False: it was deleted before. Refuses a missing account with `account_not_found`, and with
 * `cannot_delete_keeper`, `cannot_delete_last_admin`.
 */
export async function deleteAccount(
  app: App,
  input: Target,
  operator: Operator,
): Promise<{ deleted: boolean }> {
  const { account_id } = parseInput(Target, input)
  const deleted_by = operator.actor_id ?? null
  const deleted = await operate(app, 'account_delete', operator, ({ db, audit, detail }) =>
    deleteUnderLock(db, audit, { account_id, deleted_by }, detail),
  )
  return { deleted }
}

/** False: it is not deleted. Refuses a missing account with `account_not_found`. */
export async function undeleteAccount(
  app: App,
  input: Target,
  operator: Operator,
): Promise<{ undeleted: boolean }> {
  const { account_id } = parseInput(Target, input)
  const updated_by = operator.actor_id ?? null
  const undeleted = await operate(app, 'account_undelete', operator, ({ db, audit, detail }) =>
    undeleteUnderLock(db, audit, { account_id, updated_by }, detail),
  )
  return { undeleted }
}

const PurgeInput = Target.extend({ confirm: z.boolean().optional() })

/** Removes an account, deleted or not, for good. Refuses with `purge_not_confirmed` and as `deleteAccount`. */
export async function purgeAccount(
  app: App,
  input: z.input<typeof PurgeInput>,
  operator: Operator,
): Promise<void> {
  const { account_id, confirm } = parseInput(PurgeInput, input)
  if (confirm !== true) throw refusal('purge_not_confirmed')
  await operate(app, 'account_purge', operator, ({ detail, ...work }) =>
    purgeUnderLock(work, account_id, detail),
  )
}

const update = (db: Queryable, account_id: string, change: Sql, { actor_id }: Operator) =>
  db.run(sql`
    update account set ${change}, updated_at = now(), updated_by = ${actor_id ?? null}::uuid
    where id = ${account_id}::uuid`)

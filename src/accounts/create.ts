import { z } from 'zod'
import { closeBootstrap, takeBootstrapLock } from '../bootstrap/lock.ts'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { type Operator, operate } from '../core/operate.ts'
import { insertAccount, refuseTakenEmail } from './accounts.ts'
import { onlyVia } from './ending.ts'
import { ActorName, Email, Password, Username } from './formats.ts'

const Input = z.strictObject({
  username: Username,
  password: Password,
  email: Email.nullish(),
  /** Left out: the username. */
  actor_name: ActorName.nullish(),
  /** Makes it the first keeper and admin, which closes the bootstrap. */
  keeper: z.boolean().default(false),
})

export type CreatedAccount = {
  account: { id: string; username: string; email: string | null }
  actor: { id: string }
  /** The grants of a keeper account; empty for every other. */
  role_grant_ids: string[]
}

/**
 * An account with its first actor and, save for the first keeper, without any role (contract 2, section 19).
 * Refuses with `username_taken`, `email_taken`, `already_bootstrapped`, `busy`.
 */
export async function createAccount(
  app: App,
  input: z.input<typeof Input>,
  operator: Operator,
): Promise<CreatedAccount> {
  const { username, password, email = null, actor_name, keeper } = parseInput(Input, input)
  const password_hash = await app.passwords.hash(password)
  const created_by = operator.actor_id ?? null
  return await operate(app, 'account_create', operator, async ({ db, audit, detail, afterCommit }) => {
    if (keeper) await takeBootstrapLock(db)
    const { account_id: id, actor_id } = await insertAccount(db, {
      username,
      email,
      password_hash,
      created_by,
      actor_name: actor_name ?? username,
    }).catch(refuseTakenEmail)
    const role_grant_ids = keeper ? await closeBootstrap(db, actor_id) : []
    audit(
      'account_create',
      { ...(keeper && { role_grant_ids }), ...onlyVia(detail) },
      { target_account_id: id },
    )
    if (keeper && app.bootstrap.mode === 'live') afterCommit(app.bootstrap.discard)
    return { account: { id, username, email }, actor: { id: actor_id }, role_grant_ids }
  })
}

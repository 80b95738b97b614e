import { z } from 'zod'
import { closeBootstrap, takeBootstrapLock } from '../../bootstrap/lock.ts'
import { onlyVia } from '../../core/operate.ts'
import { operation, password } from '../../core/operation.ts'
import { insertAccount, refuseTakenEmail } from '../accounts.ts'
import { ActorName, Email, Password, Username } from '../formats.ts'
import { refuseWeak } from '../new-password.ts'

export type CreatedAccount = {
  account: { id: string; username: string; email: string | null }
  actor: { id: string }
  /** The grants of a keeper account; empty for any other account. */
  role_grant_ids: string[]
}

/** Makes an account and its first actor. Only the first keeper gets roles here. */
export const createAccount = operation({
  doc: 'Create an account with one actor.',
  input: z.strictObject({
    username: Username,
    password: Password,
    email: Email.nullish(),
    /** Default: the username. */
    actor_name: ActorName.nullish(),
    /** Makes the actor the first keeper and an admin, which closes the bootstrap. */
    keeper: z.boolean().default(false),
  }),
  event: 'account_create',
  errors: ['username_taken', 'email_taken', 'already_bootstrapped', 'busy'],
  refine: async ({ password, ...account }, { app }) => {
    refuseWeak(app, 'invalid_params', ['password', password], account)
    return { ...account, password_hash: await app.passwords.hash(password) }
  },
  async handler(
    { username, email = null, actor_name, keeper, password_hash },
    { app, db, audit, detail, by: created_by, afterCommit, fail },
  ): Promise<CreatedAccount> {
    if (keeper) await takeBootstrapLock(db)
    const account = { username, email, password_hash, created_by, actor_name: actor_name ?? username }
    const { account_id: id, actor_id } = await insertAccount(db, account).catch(refuseTakenEmail(fail))
    const role_grant_ids = keeper ? await closeBootstrap(db, actor_id) : []
    audit(
      'account_create',
      { ...(keeper && { role_grant_ids }), ...onlyVia(detail) },
      { target_account_id: id },
    )
    if (keeper && app.bootstrap.mode === 'live') afterCommit(app.bootstrap.discard)
    return { account: { id, username, email }, actor: { id: actor_id }, role_grant_ids }
  },
  command: {
    name: 'account create',
    args: {
      username: '--username NAME',
      email: '--email ADDRESS',
      actor_name: '--actor-name NAME',
      keeper: '--keeper',
      password,
    },
    details:
      'Prompts for the password, or reads it from standard input. The account holds no role; `cellkeep role assign` gives\nit one. With --keeper it becomes the keeper and the first admin, and the bootstrap token stops working.',
    phrase: ({ account, actor }) => ({ account: account.id, username: account.username, actor: actor.id }),
  },
})

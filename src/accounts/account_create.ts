import { z } from 'zod'
import { closeBootstrap, takeBootstrapLock } from '../bootstrap/lock.ts'
import { operation, password } from '../core/operation.ts'
import { insertAccount, refuseTakenEmail } from './accounts.ts'
import { onlyVia } from './ending.ts'
import { ActorName, Email, Password, Username } from './formats.ts'

export type CreatedAccount = {
  account: { id: string; username: string; email: string | null }
  actor: { id: string }
  /** The grants of a keeper account; empty for every other. */
  role_grant_ids: string[]
}

/** An account with its first actor and, save for the first keeper, without any role. */
export const createAccount = operation({
  doc: 'Make an account with one actor. The password is asked for, or read from standard input.',
  input: z.strictObject({
    username: Username,
    password: Password,
    email: Email.nullish(),
    /** Left out: the username. */
    actor_name: ActorName.nullish(),
    /** Makes it the first keeper and admin, which closes the bootstrap. */
    keeper: z.boolean().default(false),
  }),
  event: 'account_create',
  errors: ['username_taken', 'email_taken', 'already_bootstrapped', 'busy'],
  refine: async ({ password, ...account }, { app }) => ({
    ...account,
    password_hash: await app.passwords.hash(password),
  }),
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
      'It holds no role; `cellkeep role assign` gives it one. With --keeper it becomes the keeper and first\nadmin instead of whoever would use the bootstrap token, which then is void.',
    phrase: ({ account, actor }) => ({ account: account.id, username: account.username, actor: actor.id }),
  },
})

import { holdSession, type LockedAccount, lockAccounts } from '../accounts/locks.ts'
import { holdsAnyOf } from '../auth/active-grant.ts'
import type { Caller } from '../auth/caller.ts'
import { requireFresh } from '../auth/fresh.ts'
import type { Actor } from '../auth/identity.ts'
import type { Configured } from '../auth/ways-in.ts'
import { recorded } from '../core/mutate.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { requireAdmin } from '../roles/admin.ts'
import { builtinRoles } from '../roles/scope.ts'

/**
 * Whether an account holds admin or keeper everywhere, removed actors included: other admins cannot take it over by
 * changing how it signs in.
 */
export const isPrivileged = (account_id: Sql): Sql =>
  holdsAnyOf(account_id, builtinRoles, { byAnyActor: true })

/** Who may change how somebody else signs in. */
export const freshAdmin = {
  account: 'required',
  actor: 'required',
  roles: ['admin'],
  credential_types: ['session', 'daemon_token'],
  fresh: true,
} as const

type Admin = Pick<Caller, 'account' | 'credential'> & { actor: Actor }
type TargetEvent = 'ticket_create' | 'account_update' | 'factor_remove'

/**
 * Locks the live account whose sign-in an admin is about to change, and the account of the admin, whose session or role
 * may have ended, or lack a new second factor, by the time the locks are granted. Refuses with `account_not_found` or
 * `privileged_target`, each with a failure row of the event.
 */
export async function lockTarget(
  app: Configured,
  db: Queryable,
  event: TargetEvent,
  account_id: string,
  { account: admin, credential, actor }: Admin,
): Promise<LockedAccount> {
  const isSession = credential.type === 'session'
  const locked = await lockAccounts(db, isSession ? [account_id, admin.id] : [account_id])
  if (isSession && !(await holdSession(db, admin.id, credential.id))) throw refusal('authentication_required')
  await requireFresh(app, db.rows, { account: admin, credential })
  await requireAdmin(db, actor)
  const account = locked.get(account_id)
  if (!account || account.deleted_at !== null) {
    const reason = 'account_not_found'
    throw recorded(event, refusal(reason), { reason, attempted_account_id: account_id })
  }
  const { privileged } = await db.one<{ privileged: boolean }>(sql`
    select ${isPrivileged(sql`account.id`)} as privileged
    from account where id = ${account_id}::uuid`)
  const reason = 'privileged_target'
  if (privileged) throw recorded(event, refusal(reason), { reason }, { target_account_id: account_id })
  return account
}

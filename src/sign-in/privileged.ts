import type { LockedAccount } from '../accounts/locks.ts'
import { holdsAnyOf } from '../auth/active-grant.ts'
import { requireFresh } from '../auth/fresh.ts'
import type { Configured } from '../auth/ways-in.ts'
import { recorded } from '../core/mutate.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { type Admin, lockForAdmin } from '../roles/admin.ts'
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

type TargetEvent = 'ticket_create' | 'account_update' | 'factor_remove'

/**
 * As `lockForAdmin`, for a change of how a live account signs in: the session of the admin may also have grown stale, or
 * lack a new second factor. Refuses with `account_not_found` or `privileged_target`, each with a failure row of the
 * event.
 */
export async function lockTarget(
  app: Configured,
  db: Queryable,
  event: TargetEvent,
  account_id: string,
  admin: Admin,
): Promise<LockedAccount> {
  const account = await lockForAdmin(db, account_id, admin)
  await requireFresh(app, db.rows, admin)
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

import { holdCredential, type LockedAccount, lockAccounts } from '../accounts/locks.ts'
import { activeGrant } from '../auth/active-grant.ts'
import type { Caller } from '../auth/caller.ts'
import type { Actor, RoleGrant } from '../auth/identity.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal, type ServiceError } from '../errors.ts'

/** Whether these grants, as read when the request was admitted, make the acting actor a global admin. */
export const holdsAdmin = (grants: readonly Pick<RoleGrant, 'role' | 'scope_id'>[]): boolean =>
  grants.some(({ role, scope_id }) => role === 'admin' && scope_id === null)

/** Refuses any account but the caller's own to all but global admins, whether or not that account exists. */
export function requireOwnOrAdmin(
  account_id: string,
  { account, role_grants }: { account: { id: string }; role_grants: readonly RoleGrant[] },
): void {
  if (account_id !== account.id && !holdsAdmin(role_grants)) throw notAdmin()
}

/** The refusal of an actor that has lost the role admin, or was deleted, while its call waited for locks. */
export async function lostAdmin(db: Queryable, { id }: { id: string }): Promise<ServiceError | undefined> {
  const live = await db.first<{ is_admin: boolean }>(sql`
    select exists (
      select from role_grant g
      where g.actor_id = actor.id and g.role = 'admin' and g.scope_id is null and ${activeGrant}
    ) as is_admin
    from actor where id = ${id}::uuid and deleted_at is null`)
  if (!live) return refusal('account_vanished')
  return live.is_admin ? undefined : notAdmin()
}

export type Admin = Pick<Caller, 'account' | 'credential'> & { actor: Actor }

/**
 * Locks the account that an admin is about to change, and the account of the admin, whose credential or role may have
 * ended by the time the locks are granted. Undefined if there is no such account.
 */
export async function lockForAdmin(
  db: Queryable,
  account_id: string,
  { account: admin, credential, actor }: Admin,
): Promise<LockedAccount | undefined> {
  const [locked, isHeld, lost] = await Promise.all([
    lockAccounts(db, [account_id, admin.id]),
    holdCredential(db, { account: admin, credential }),
    lostAdmin(db, actor),
  ])
  if (!locked.has(admin.id)) throw refusal('account_vanished')
  if (!isHeld) throw refusal('authentication_required')
  if (lost) throw lost
  return locked.get(account_id)
}

const notAdmin = (): ServiceError => refusal('insufficient_permissions', { required_roles: ['admin'] })

import type { App } from '../core/app.ts'
import { recorded } from '../core/mutate.ts'
import { type Operating, onlyVia } from '../core/operate.ts'
import { refusal, type ServiceError } from '../errors.ts'
import { type ActiveGrant, endGrants, lastAdminAmong } from './revoke.ts'

/** A grant that an operator call ended. */
export type RevokedGrant = {
  role_grant_id: string
  role: string
  scope_kind: string | null
  scope_id: string | null
  actor_id: string
  account_id: string
}

export const toRevoked = ({ id, ...grant }: ActiveGrant): RevokedGrant => {
  const { role, scope_kind, scope_id, actor_id, account_id } = grant
  return { role_grant_id: id, role, scope_kind, scope_id, actor_id, account_id }
}

/** Ends grants whose account is locked; refuses to end the last admin. */
export async function endByOperator(
  app: App,
  work: Operating,
  grants: readonly ActiveGrant[],
  reason: string | null,
): Promise<void> {
  const last = await lastAdminAmong(work.db, grants)
  if (last) throw refusedByOperator(work, last, 'cannot_revoke_last_admin')
  const revocation = { cause: 'library', revoked_by: work.by, reason, ...onlyVia(work.detail) } as const
  await endGrants(app, work, grants, revocation)
}

export const refusedByOperator = (
  { detail }: Operating,
  { id: role_grant_id, role, actor_id, account_id }: ActiveGrant,
  reason: 'role_grant_path_not_allowed' | 'cannot_revoke_last_admin',
): ServiceError =>
  recorded(
    'role_grant_revoke',
    refusal(reason),
    { reason, role, role_grant_id, ...onlyVia(detail) },
    { target_actor_id: actor_id, target_account_id: account_id },
  )

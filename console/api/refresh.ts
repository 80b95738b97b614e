import type { LiveEvents } from '../../src/client/live.ts'
import type { Name } from './client.ts'

/** What an account hears, and the methods whose answers it makes old. */
export const refreshedBy: Partial<Record<keyof LiveEvents, readonly Name[]>> = {
  role_grant_offer_received: ['role_grant_offer_list', 'role_grant_offer_history'],
  role_grant_offer_retracted: ['role_grant_offer_list', 'role_grant_offer_history'],
  role_grant_offer_accepted: ['role_grant_offer_list', 'role_grant_offer_history', 'admin_account_list'],
  role_grant_offer_declined: ['role_grant_offer_list', 'role_grant_offer_history', 'admin_account_list'],
  role_grant_offer_supersede: ['role_grant_offer_list', 'role_grant_offer_history', 'admin_account_list'],
  role_grant_revoke: ['admin_account_list', 'cell_list', 'cell_get'],
}

/** The same for rows of the audit log, by the beginning of their type: for admins, who may follow it. */
export const refreshedByRow: readonly (readonly [prefix: string, methods: readonly Name[]])[] = [
  ['role_grant_offer_', ['role_grant_offer_history', 'admin_account_list']],
  ['role_grant_', ['admin_account_list', 'audit_log_role_grant_history']],
  ['account_', ['admin_account_list']],
  ['actor_', ['admin_account_list']],
  ['signup', ['admin_account_list', 'invite_list']],
  ['session_', ['admin_session_list']],
  ['log', ['admin_session_list']],
  ['invite_', ['invite_list']],
  ['app_settings_update', ['app_settings_get']],
]

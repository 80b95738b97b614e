import { deleteAccount } from './accounts/account_delete.ts'
import { createAccount } from './accounts/admin/account_create.ts'
import { listSignIn } from './accounts/admin/account_factors.ts'
import { purgeAccount } from './accounts/admin/account_purge.ts'
import { setEmail, verifyEmail } from './accounts/admin/account_set_email.ts'
import { setPassword } from './accounts/admin/account_set_password.ts'
import { findAccount } from './accounts/admin/account_show.ts'
import { undeleteAccount } from './accounts/admin/account_undelete.ts'
import { unlockAccount } from './accounts/admin/account_unlock.ts'
import { listAccounts } from './accounts/admin/admin_account_list.ts'
import { setUsername } from './accounts/admin/admin_account_username_set.ts'
import { addActor } from './actors/actor_add.ts'
import { listActors } from './actors/actor_list.ts'
import { removeActor } from './actors/actor_remove.ts'
import { renameActor } from './actors/actor_rename.ts'
import { exportAudit } from './audit-log/audit_export.ts'
import { resetBootstrapToken } from './bootstrap/bootstrap_token_reset.ts'
import { cleanUp } from './cleanup/clean_up.ts'
import type { App } from './core/app.ts'
import { checkOperator, type Operator } from './core/operate.ts'
import { listMessages } from './delivery/admin_message_list.ts'
import { showMessage } from './delivery/mail_show.ts'
import { sendTestMessage } from './delivery/mail_test.ts'
import { importAccounts } from './import/import.ts'
import { createInvite } from './invites/invite_create.ts'
import { deleteInvite } from './invites/invite_delete.ts'
import { listInvites } from './invites/invite_list.ts'
import { sendInvite } from './invites/invite_send.ts'
import { drainNode } from './nodes/node_drain.ts'
import { nodes } from './nodes/node_list.ts'
import { resumeNode } from './nodes/node_resume.ts'
import { secureAccount } from './recovery/account_secure.ts'
import { createResetLink } from './recovery/admin_account_reset_link_create.ts'
import { destroyScope } from './roles/destroy-scope.ts'
import { transferKeeper } from './roles/keeper_transfer.ts'
import { grantRole } from './roles/role_assign.ts'
import { revokeRole, revokeRoleEverywhere } from './roles/role_revoke.ts'
import { resealSecrets } from './sealing/keys_reseal.ts'
import { clearFactors } from './second-factor/admin_account_factors_clear.ts'
import { listSessions } from './sessions/admin_session_list.ts'
import { revokeSession } from './sessions/admin_session_revoke.ts'
import { revokeEverySession, revokeSessions } from './sessions/admin_session_revoke_all.ts'
import { createSession } from './sessions/session_create.ts'
import { getSettings } from './settings/app_settings_get.ts'
import { setSettings } from './settings/app_settings_update.ts'
import { listTickets } from './tickets/admin_ticket_list.ts'
import { revokeTicket } from './tickets/admin_ticket_revoke.ts'
import { listTokens } from './tokens/admin_token_list.ts'
import { revokeToken } from './tokens/admin_token_revoke.ts'
import { revokeEveryToken, revokeTokens } from './tokens/admin_token_revoke_all.ts'
import { createToken } from './tokens/token_create.ts'

/** Every operation, in the order of the help. To add one and its command: its file, a line here, its test. */
export const operations = {
  createAccount,
  listAccounts,
  findAccount,
  setPassword,
  setUsername,
  setEmail,
  verifyEmail,
  unlockAccount,
  importAccounts,
  createResetLink,
  secureAccount,
  listSignIn,
  clearFactors,
  deleteAccount,
  undeleteAccount,
  purgeAccount,

  listActors,
  addActor,
  renameActor,
  removeActor,

  createSession,
  listSessions,
  revokeSession,
  revokeSessions,
  revokeEverySession,
  listTokens,
  createToken,
  revokeToken,
  revokeTokens,
  revokeEveryToken,

  grantRole,
  revokeRole,
  revokeRoleEverywhere,
  destroyScope,
  transferKeeper,

  createInvite,
  listInvites,
  sendInvite,
  deleteInvite,
  getSettings,
  setSettings,

  listTickets,
  revokeTicket,
  listMessages,
  showMessage,
  sendTestMessage,

  nodes,
  drainNode,
  resumeNode,
  exportAudit,
  resetBootstrapToken,
  cleanUp,
  resealSecrets,
}

type Bound<F> = F extends (app: App, ...rest: infer R) => infer T ? (...rest: R) => T : never

/** The operations of one service: `service.operations.createAccount({ … }, { via: 'my_job' })`. */
export type Operations = { readonly [K in keyof typeof operations]: Bound<(typeof operations)[K]> }

export function bindOperations(app: App): Operations {
  const bound = Object.entries(operations).map(([name, call]) => [
    name,
    async (input?: unknown, operator?: Operator) => {
      const by = operator && checkOperator(operator)
      return await (call as (app: App, ...rest: unknown[]) => unknown)(app, input, by)
    },
  ])
  return Object.fromEntries(bound) as Operations
}

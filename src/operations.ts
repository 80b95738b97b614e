import { createAccount } from './accounts/create.ts'
import { findAccount, listAccounts } from './accounts/find.ts'
import {
  deleteAccount,
  purgeAccount,
  setEmail,
  setPassword,
  undeleteAccount,
  unlockAccount,
  verifyEmail,
} from './accounts/operations.ts'
import { addActor, listActors, removeActor, renameActor } from './actors/operations.ts'
import { exportAudit } from './audit/export.ts'
import { resetBootstrapToken } from './bootstrap/operations.ts'
import { cleanUp } from './cleanup/cleanup.ts'
import type { App } from './core/app.ts'
import { checkVia, type Operator } from './core/operate.ts'
import { createInvite, deleteInvite, listInvites } from './invites/operations.ts'
import { destroyScope } from './roles/destroy-scope.ts'
import { transferKeeper } from './roles/keeper.ts'
import { grantRole, revokeRole, revokeRoleEverywhere } from './roles/operations.ts'
import { listSessions, revokeEverySession, revokeSession, revokeSessions } from './sessions/operations.ts'
import { getSettings, setSettings } from './settings/operations.ts'
import { listTokens, revokeEveryToken, revokeToken, revokeTokens } from './tokens/operations.ts'

/**
 * Every operator call: what a process that holds the database may do without a credential, as the CLI and
 * library consumers use it (contract 2, section 19). Adding one = its function, a line here, its test. All
 * take `(app, input)`; those that change something also say who: `{ via: 'cli' }`.
 */
const operations = {
  createAccount,
  findAccount,
  listAccounts,
  setPassword,
  setEmail,
  verifyEmail,
  unlockAccount,
  deleteAccount,
  undeleteAccount,
  purgeAccount,

  listActors,
  addActor,
  renameActor,
  removeActor,

  listSessions,
  revokeSession,
  revokeSessions,
  revokeEverySession,
  listTokens,
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
  deleteInvite,
  getSettings,
  setSettings,

  exportAudit,
  resetBootstrapToken,
  cleanUp,
}

type Bound<F> = F extends (app: App, ...rest: infer R) => infer T ? (...rest: R) => T : never

/** The operator calls of one service: `service.operations.createAccount({ … }, { via: 'my_job' })`. */
export type Operations = { readonly [K in keyof typeof operations]: Bound<(typeof operations)[K]> }

export function bindOperations(app: App): Operations {
  const bound = Object.entries(operations).map(([name, call]) => [
    name,
    async (input?: unknown, operator?: Operator) => {
      if (operator) checkVia(operator.via)
      return await (call as (app: App, ...rest: unknown[]) => unknown)(app, input, operator)
    },
  ])
  return Object.fromEntries(bound) as Operations
}

import { account_delete } from './accounts/account_delete.ts'
import { account_purge } from './accounts/account_purge.ts'
import { account_undelete } from './accounts/account_undelete.ts'
import { account_verify } from './accounts/account_verify.ts'
import { admin_account_list } from './accounts/admin_account_list.ts'
import { actor_lookup } from './actors/actor_lookup.ts'
import { actor_search } from './actors/actor_search.ts'
import { cell_create } from './cells/cell_create.ts'
import { cell_delete } from './cells/cell_delete.ts'
import { cell_get } from './cells/cell_get.ts'
import { cell_list } from './cells/cell_list.ts'
import { cell_update } from './cells/cell_update.ts'
import { invite_create } from './invites/invite_create.ts'
import { invite_delete } from './invites/invite_delete.ts'
import { invite_list } from './invites/invite_list.ts'
import { account_session_list } from './sessions/account_session_list.ts'
import { account_session_revoke } from './sessions/account_session_revoke.ts'
import { account_session_revoke_all } from './sessions/account_session_revoke_all.ts'
import { admin_session_list } from './sessions/admin_session_list.ts'
import { admin_session_revoke_all } from './sessions/admin_session_revoke_all.ts'
import { app_settings_get } from './settings/app_settings_get.ts'
import { app_settings_update } from './settings/app_settings_update.ts'
import { account_token_create } from './tokens/account_token_create.ts'
import { account_token_list } from './tokens/account_token_list.ts'
import { account_token_revoke } from './tokens/account_token_revoke.ts'
import { admin_token_revoke_all } from './tokens/admin_token_revoke_all.ts'

/** Every RPC method. Adding one = its file, a line here, its test. */
export const actions = {
  account_verify,
  account_session_list,
  account_session_revoke,
  account_session_revoke_all,
  account_token_create,
  account_token_list,
  account_token_revoke,
  account_delete,
  account_undelete,
  account_purge,

  actor_lookup,
  actor_search,

  admin_account_list,
  admin_session_list,
  admin_session_revoke_all,
  admin_token_revoke_all,

  invite_create,
  invite_list,
  invite_delete,
  app_settings_get,
  app_settings_update,

  cell_create,
  cell_get,
  cell_list,
  cell_update,
  cell_delete,
}

export type Actions = typeof actions

import { account_delete } from './accounts/account_delete.ts'
import { account_delete_preview } from './accounts/account_delete_preview.ts'
import { account_username_change } from './accounts/account_username_change.ts'
import { account_verify } from './accounts/account_verify.ts'
import { account_purge } from './accounts/admin/account_purge.ts'
import { account_undelete } from './accounts/admin/account_undelete.ts'
import { admin_account_get } from './accounts/admin/admin_account_get.ts'
import { admin_account_list } from './accounts/admin/admin_account_list.ts'
import { admin_account_username_set } from './accounts/admin/admin_account_username_set.ts'
import { actor_lookup } from './actors/actor_lookup.ts'
import { actor_rename } from './actors/actor_rename.ts'
import { actor_search } from './actors/actor_search.ts'
import { audit_log_activity } from './audit-log/audit_log_activity.ts'
import { audit_log_list } from './audit-log/audit_log_list.ts'
import { audit_log_role_grant_history } from './audit-log/audit_log_role_grant_history.ts'
import { cell_audit_list } from './cells/cell_audit_list.ts'
import { cell_create } from './cells/cell_create.ts'
import { cell_delete } from './cells/cell_delete.ts'
import { cell_delete_preview } from './cells/cell_delete_preview.ts'
import { cell_get } from './cells/cell_get.ts'
import { cell_update } from './cells/cell_update.ts'
import { cell_clone } from './cells/clone/cell_clone.ts'
import { cell_clone_preview } from './cells/clone/cell_clone_preview.ts'
import { cell_field_delete } from './cells/edges/cell_field_delete.ts'
import { cell_field_list } from './cells/edges/cell_field_list.ts'
import { cell_field_set } from './cells/edges/cell_field_set.ts'
import { cell_item_delete } from './cells/edges/cell_item_delete.ts'
import { cell_item_insert } from './cells/edges/cell_item_insert.ts'
import { cell_item_list } from './cells/edges/cell_item_list.ts'
import { cell_item_move } from './cells/edges/cell_item_move.ts'
import { cell_access_explain } from './cells/explain/cell_access_explain.ts'
import { cell_grant_create } from './cells/grants/cell_grant_create.ts'
import { cell_grant_list } from './cells/grants/cell_grant_list.ts'
import { cell_grant_revoke } from './cells/grants/cell_grant_revoke.ts'
import { cell_list } from './cells/list/cell_list.ts'
import { admin_message_list } from './delivery/admin_message_list.ts'
import { discover } from './discovery/rpc.discover.ts'
import { service_status } from './discovery/service_status.ts'
import { account_email_change } from './email/account_email_change.ts'
import { account_email_verify_send } from './email/account_email_verify_send.ts'
import { admin_account_email_set } from './email/admin_account_email_set.ts'
import { invite_create } from './invites/invite_create.ts'
import { invite_delete } from './invites/invite_delete.ts'
import { invite_list } from './invites/invite_list.ts'
import { invite_send } from './invites/invite_send.ts'
import { role_grant_offer_accept } from './offers/role_grant_offer_accept.ts'
import { role_grant_offer_create } from './offers/role_grant_offer_create.ts'
import { role_grant_offer_decline } from './offers/role_grant_offer_decline.ts'
import { role_grant_offer_history } from './offers/role_grant_offer_history.ts'
import { role_grant_offer_list } from './offers/role_grant_offer_list.ts'
import { role_grant_offer_retract } from './offers/role_grant_offer_retract.ts'
import { account_link_remove } from './oidc/account_link_remove.ts'
import { account_passkey_register_begin } from './passkeys/account_passkey_register_begin.ts'
import { account_passkey_register_finish } from './passkeys/account_passkey_register_finish.ts'
import { account_passkey_remove } from './passkeys/account_passkey_remove.ts'
import { account_passkey_rename } from './passkeys/account_passkey_rename.ts'
import { admin_account_reset_link_create } from './recovery/admin_account_reset_link_create.ts'
import { registry_list } from './roles/registry_list.ts'
import { role_grant_assign } from './roles/role_grant_assign.ts'
import { role_grant_explain } from './roles/role_grant_explain.ts'
import { role_grant_revoke } from './roles/role_grant_revoke.ts'
import { role_holder_list } from './roles/role_holder_list.ts'
import { self_service_role_set } from './roles/self_service_role_set.ts'
import { account_recovery_codes_create } from './second-factor/account_recovery_codes_create.ts'
import { account_totp_confirm } from './second-factor/account_totp_confirm.ts'
import { account_totp_enrol } from './second-factor/account_totp_enrol.ts'
import { account_totp_remove } from './second-factor/account_totp_remove.ts'
import { admin_account_factors_clear } from './second-factor/admin_account_factors_clear.ts'
import { account_session_list } from './sessions/account_session_list.ts'
import { account_session_revoke } from './sessions/account_session_revoke.ts'
import { account_session_revoke_all } from './sessions/account_session_revoke_all.ts'
import { admin_session_list } from './sessions/admin_session_list.ts'
import { admin_session_revoke } from './sessions/admin_session_revoke.ts'
import { admin_session_revoke_all } from './sessions/admin_session_revoke_all.ts'
import { app_settings_get } from './settings/app_settings_get.ts'
import { app_settings_update } from './settings/app_settings_update.ts'
import { account_sign_in_get } from './sign-in/account_sign_in_get.ts'
import { admin_ticket_list } from './tickets/admin_ticket_list.ts'
import { admin_ticket_revoke } from './tickets/admin_ticket_revoke.ts'
import { account_token_create } from './tokens/account_token_create.ts'
import { account_token_list } from './tokens/account_token_list.ts'
import { account_token_revoke } from './tokens/account_token_revoke.ts'
import { admin_token_list } from './tokens/admin_token_list.ts'
import { admin_token_revoke } from './tokens/admin_token_revoke.ts'
import { admin_token_revoke_all } from './tokens/admin_token_revoke_all.ts'

/** Every RPC method. To add one, write its file and its test, and list it here. */
export const actions = {
  account_verify,
  account_session_list,
  account_session_revoke,
  account_session_revoke_all,
  account_token_create,
  account_token_list,
  account_token_revoke,
  account_sign_in_get,
  account_totp_enrol,
  account_totp_confirm,
  account_totp_remove,
  account_recovery_codes_create,
  account_username_change,
  account_link_remove,
  account_email_change,
  account_email_verify_send,
  account_passkey_register_begin,
  account_passkey_register_finish,
  account_passkey_rename,
  account_passkey_remove,
  account_delete,
  account_delete_preview,
  account_undelete,
  account_purge,

  actor_lookup,
  actor_search,
  actor_rename,

  admin_account_list,
  admin_account_get,
  admin_account_username_set,
  admin_account_email_set,
  admin_account_factors_clear,
  admin_session_list,
  admin_session_revoke,
  admin_session_revoke_all,
  admin_token_list,
  admin_token_revoke,
  admin_token_revoke_all,
  admin_account_reset_link_create,
  admin_ticket_list,
  admin_ticket_revoke,
  admin_message_list,

  invite_create,
  invite_list,
  invite_send,
  invite_delete,
  app_settings_get,
  app_settings_update,

  audit_log_list,
  audit_log_activity,
  audit_log_role_grant_history,

  role_grant_offer_create,
  role_grant_offer_accept,
  role_grant_offer_decline,
  role_grant_offer_retract,
  role_grant_offer_list,
  role_grant_offer_history,
  role_grant_revoke,
  role_grant_assign,
  self_service_role_set,
  role_grant_explain,
  role_holder_list,
  registry_list,

  cell_create,
  cell_get,
  cell_list,
  cell_update,
  cell_delete,
  cell_delete_preview,
  cell_clone,
  cell_clone_preview,
  cell_grant_create,
  cell_grant_revoke,
  cell_grant_list,
  cell_audit_list,
  cell_access_explain,
  cell_field_set,
  cell_field_delete,
  cell_field_list,
  cell_item_insert,
  cell_item_move,
  cell_item_delete,
  cell_item_list,

  service_status,
  'rpc.discover': discover,
}

export type Actions = typeof actions

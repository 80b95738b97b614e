import type { ConsumerReasons } from './wire/consumer.ts'

export type Entry = { code: number; status?: number; doc: string }

/**
 * Every reason for an error, with its code, HTTP status and meaning. Clients switch on the reason only; `message` is
 * a fixed text per code, for people.
 */
const reasons = {
  parse_error: { code: -32700, doc: 'The body is not valid JSON.' },
  invalid_request: { code: -32600, doc: 'The JSON-RPC envelope is invalid; `detail` names the rule.' },
  method_not_found: { code: -32601, doc: 'The method is unknown or its feature is off.' },
  invalid_params: { code: -32602, doc: 'The input breaks its schema; `issues` lists where.' },
  internal_error: { code: -32603, doc: 'Unexpected failure; the cause is in the log under the request id.' },
  service_unavailable: {
    code: -32007,
    doc: 'The database or the limiter store cannot be reached; retry after `retry_after` seconds. For a mutation `outcome` is `none` if nothing was written, `unknown` if the connection was lost during the commit.',
  },
  storage_full: {
    code: -32007,
    doc: 'The disk of the database is full. Reads still work; writes will work again once the operator has freed space.',
  },
  timeout: { code: -32008, doc: 'A statement or a change exceeded its time limit; nothing was written.' },
  queue_overflow: { code: -32009, doc: 'WebSocket: too many requests of this socket are in flight.' },
  request_cancelled: { code: -32010, doc: 'WebSocket: cancelled before its handler started.' },
  rate_limited: { code: -32006, doc: 'A limiter refused the call; retry after `retry_after` seconds.' },
  authentication_required: { code: -32001, doc: 'No valid credential came with the request.' },
  account_vanished: { code: -32001, doc: 'The account or actor was deleted during the request.' },
  credential_type_required: { code: -32002, doc: 'The method requires another type of credential.' },
  token_scope_required: {
    code: -32002,
    doc: 'The scope of the API token does not cover this; `required_scope` is `rpc:` with the method, or `surface:` with the route.',
  },
  second_factor_enrolment_required: {
    code: -32002,
    doc: 'A role of the account requires a second factor, but this credential was obtained without one: enrol one, or sign in with it.',
  },
  fresh_authentication_required: {
    code: -32002,
    doc: 'The caller last proved who they are more than `max_age` seconds ago: `POST /reauthenticate` with one of `methods`, then call again.',
  },
  insufficient_permissions: { code: -32002, doc: 'The acting actor lacks the role.' },
  actor_required: {
    code: -32602,
    doc: 'The account has several actors: name one of `available` as `acting`.',
  },
  actor_not_on_account: { code: -32602, doc: '`acting` is not a live actor of the account.' },
  no_actors_on_account: { code: -32002, doc: 'The account has no live actor.' },

  idempotency_key_reused: {
    code: -32004,
    doc: 'The idempotency key was used for another method, actor or input; a new call needs a new key.',
  },
  idempotency_replayed: {
    code: -32004,
    doc: 'The call was carried out under this idempotency key at `completed_at`, and its answer was not kept: read the state.',
  },
  rate_limit_exceeded: { code: -32006, doc: 'REST form of `rate_limited`.' },
  busy: {
    code: -32007,
    doc: 'Too many password hashes, live connections, unread responses, incomplete request bodies or calls of this caller; retry after `retry_after` seconds.',
  },
  batch_answer_too_large: {
    code: -32600,
    status: 413,
    doc: 'The answers so far fill the batch. This call was not executed; send it in another batch.',
  },
  shutting_down: { code: -32007, doc: 'The server is stopping; use another node or retry.' },
  draining: {
    code: -32007,
    doc: 'Readiness: an operator is draining this node with `cellkeep nodes drain`; it still answers.',
  },
  node_not_found: { code: -32003, doc: 'Operations: no node of this database has this id, or it has ended.' },
  forbidden_origin: { code: -32002, doc: 'The Origin is not on the allow-list.' },
  not_found: { code: -32003, doc: 'There is nothing at this path.' },
  method_not_allowed: {
    code: -32600,
    status: 405,
    doc: 'The path does not support this HTTP method; see `Allow`.',
  },
  payload_too_large: { code: -32600, status: 413, doc: 'The body exceeds the limit.' },
  upgrade_required: { code: -32600, status: 426, doc: 'This path is a WebSocket; send an upgrade request.' },
  invalid_upgrade: { code: -32600, doc: 'The `Sec-WebSocket-*` headers are not valid, or there is a body.' },
  unsupported_media_type: { code: -32600, status: 415, doc: 'The body must be application/json in UTF-8.' },
  invalid_json_body: { code: -32700, doc: 'The REST body is not a JSON object.' },
  invalid_request_body: { code: -32602, doc: 'The REST body breaks its schema; see `issues`.' },
  invalid_query_params: { code: -32602, doc: 'The query breaks its schema; see `issues`.' },
  schema_drift: { code: -32007, doc: 'Readiness: a column, a migration or the right to write is missing.' },
  db_unreachable: { code: -32007, doc: 'Readiness: the database does not answer.' },
  db_read_only: { code: -32007, doc: 'Readiness: the database is a standby, or read-only.' },
  db_other_database: {
    code: -32007,
    doc: 'Readiness: the URL leads to another database than before: a restored, foreign or empty one. To accept it, restart the node.',
  },
  stale_primary: {
    code: -32007,
    doc: 'Readiness: the only server that answers is a primary that was replaced, or restored to the past. To accept it, restart the node.',
  },

  flow_expired: {
    code: -32004,
    doc: 'The flow has expired, was already completed, or began in another browser: begin again.',
  },
  second_factor_required: {
    code: -32001,
    doc: 'REST: the first step succeeded; `POST /second_factor` with one of `methods` within `expires_in` seconds.',
  },
  invalid_second_factor: {
    code: -32001,
    doc: 'The code is wrong or was already used, or the passkey was not accepted.',
  },
  invalid_code: { code: -32602, doc: 'The code is not a current one of the authenticator app.' },
  second_factor_missing: {
    code: -32004,
    doc: 'The account has no second factor that recovery codes could replace.',
  },
  second_factor_policy: {
    code: -32002,
    doc: 'A role of the account requires a second factor: add another one before you remove the last.',
  },
  invalid_credentials: { code: -32001, doc: 'Unknown account or wrong password.' },
  already_bootstrapped: { code: -32002, doc: 'Bootstrap works only once and has been done.' },
  invalid_token: { code: -32001, doc: 'The bootstrap token is wrong.' },
  token_file_missing: { code: -32003, doc: 'There is no usable bootstrap token file.' },
  username_taken: { code: -32004, doc: 'Another account has this username, or had it and it is reserved.' },
  no_matching_invite: {
    code: -32002,
    doc: 'Signup is closed and no open invite matches. Unless `invite_claim` is `match`, the `invite_token` of its link must match too.',
  },
  signup_conflict: { code: -32004, doc: 'The username or e-mail is taken.' },
  account_not_found: {
    code: -32003,
    doc: 'There is no such account, or it is not in the state (live, deleted) that this needs.',
  },
  cannot_delete_keeper: { code: -32002, doc: 'The account holds the role keeper; transfer it first.' },
  cannot_delete_last_admin: { code: -32002, doc: 'This would leave the service without an admin.' },
  purge_not_confirmed: { code: -32602, doc: 'A purge needs `confirm: true`.' },
  unknown_method: { code: -32602, doc: 'The token scope names a method that does not exist; see `issues`.' },
  invite_not_found: { code: -32003, doc: 'The invite does not exist or was claimed.' },
  invite_duplicate: { code: -32004, doc: 'An open invite has this e-mail or username.' },
  invite_account_exists_username: { code: -32004, doc: 'An account has this username.' },
  invite_account_exists_email: { code: -32004, doc: 'An account has this e-mail.' },
  actor_search_scope_required: { code: -32602, doc: 'Only an admin searches without `scope_ids`.' },
  actor_not_found: { code: -32003, doc: 'There is no such live actor.' },
  to_actor_required: { code: -32602, doc: 'The account has several actors: name one of `available`.' },
  role_grant_not_found: { code: -32003, doc: 'The actor has no such active grant.' },
  cannot_revoke_last_admin: { code: -32002, doc: 'This would leave the service without an admin.' },
  role_grant_builtin_scoped: { code: -32602, doc: 'keeper and admin take no scope.' },
  role_not_web_grantable: { code: -32002, doc: 'The role lacks the grant path `admin`.' },
  role_not_self_service_eligible: { code: -32002, doc: 'The role is not self-service.' },
  role_grant_scope_destroyed: {
    code: -32004,
    doc: 'The scope was destroyed; nothing new can be created there.',
  },
  role_grant_scope_not_applicable: {
    code: -32602,
    doc: 'The role does not apply to this kind of scope.',
  },

  role_grant_offer_not_found: {
    code: -32003,
    doc: 'The offer does not exist, or is not the caller’s to answer.',
  },
  role_grant_offer_terminal: { code: -32004, doc: 'The offer was answered, retracted or superseded.' },
  role_grant_offer_expired: { code: -32004, doc: 'The offer has expired.' },
  role_grant_offer_actor_mismatch: { code: -32002, doc: 'The offer is for another actor of the account.' },
  role_grant_offer_limit: {
    code: -32004,
    doc: 'The actor already has the `max` of this `limit`: pending `offers` that it made, or active `grants`. End some first.',
  },
  role_grant_offer_role_not_grantable: { code: -32002, doc: 'The role lacks the grant path `admin`.' },
  role_grant_offer_not_authorized: {
    code: -32002,
    doc: 'The acting actor may not offer this role there: by default only a holder of the role may. An admin can grant it by `role_grant_assign`.',
  },
  role_grant_offer_self_target: { code: -32602, doc: 'An account cannot make an offer to itself.' },
  role_grant_offer_actor_account_mismatch: {
    code: -32602,
    doc: '`to_actor_id` is not a live actor of the account.',
  },

  ticket_not_found: {
    code: -32003,
    doc: 'The link was already used, has expired or is unknown; ask for another.',
  },
  privileged_target: {
    code: -32002,
    doc: 'The account holds keeper or a global admin role: only an operator can change how it signs in.',
  },
  no_recipient: { code: -32004, doc: 'No message can be sent: there is no e-mail, or no transport.' },

  provider_not_found: { code: -32003, doc: 'There is no such provider to sign in with.' },
  provider_unavailable: {
    code: -32007,
    doc: 'The provider cannot be reached; retry after `retry_after` seconds.',
  },
  oidc_failed: { code: -32001, doc: 'The provider did not confirm who this is; begin again.' },
  oidc_not_allowed: {
    code: -32002,
    doc: 'The provider confirmed who this is, but its settings here do not admit this person.',
  },
  oidc_unknown_account: {
    code: -32002,
    doc: 'No account is linked to this identity, and it may not sign up without an invite.',
  },
  oidc_account_exists: {
    code: -32004,
    doc: 'An account has the e-mail of this identity: sign in to it another way, then link the provider.',
  },
  oidc_linked_elsewhere: {
    code: -32004,
    doc: 'The identity is linked to another account, or the account to another identity of this provider.',
  },
  last_sign_in_method: {
    code: -32004,
    doc: 'The account has no other way to sign in; add one first.',
  },

  passkey_limit: { code: -32004, doc: 'The account has the max number of passkeys; remove one first.' },
  passkey_known: { code: -32004, doc: 'An account already has this passkey.' },
  passkey_refused: {
    code: -32602,
    doc: 'The response does not prove a new passkey for this session; begin again.',
  },

  email_taken: { code: -32004, doc: 'Another account has this e-mail.' },
  last_actor: { code: -32004, doc: 'Operator and library calls: an account needs at least one live actor.' },
  actor_limit: {
    code: -32004,
    doc: 'Operator and library calls: the account has the max number of actors.',
  },
  role_grant_path_not_allowed: {
    code: -32002,
    doc: 'Operator and library calls: the role cannot be granted this way.',
  },

  cell_not_found: {
    code: -32003,
    doc: 'The cell does not exist, is deleted, or is not accessible to the caller.',
  },
  cell_path_admin_only: { code: -32002, doc: 'Only an admin may write `path`.' },
  cell_visibility_manage_only: { code: -32002, doc: 'Only the owner or an admin may change `visibility`.' },
  cell_create_forbidden: { code: -32002, doc: 'The create hook refused.' },
  cell_kind_in_data: { code: -32602, doc: '`data` may not have a top-level key `kind`.' },
  cell_kind_empty: { code: -32602, doc: '`kind` may be null but not empty.' },
  cell_data_invalid: { code: -32602, doc: 'The data hook refused; see `issues`.' },
  cell_get_requires_id_or_path: { code: -32602, doc: 'Give either `id` or `path`.' },
  cell_field_list_requires_source_or_target: { code: -32602, doc: 'Give either `source_id` or `target_id`.' },
  cell_item_list_requires_parent_or_child: { code: -32602, doc: 'Give either `parent_id` or `child_id`.' },
  cell_list_created_by_requires_auth: { code: -32602, doc: 'The filter `created_by` needs a credential.' },
  cell_list_shared_with_requires_auth: { code: -32602, doc: 'The filter `shared_with` needs a credential.' },
  cell_clone_too_large: {
    code: -32602,
    doc: 'The clone exceeds the `max` of this `limit`; nothing was written.',
  },
  cell_grant_not_found: {
    code: -32003,
    doc: 'The grant does not exist, or its cell is not accessible to the caller.',
  },
  cell_grant_unknown_role: { code: -32602, doc: 'The role of the principal is not registered.' },
  cell_grant_unknown_actor: { code: -32602, doc: 'The actor of the principal does not exist or is deleted.' },
  cell_grant_principal_is_owner: { code: -32602, doc: 'The owner of a cell cannot be given a grant on it.' },
  cell_path_taken: { code: -32004, doc: 'Another live cell has this path.' },
  cell_item_position_taken: { code: -32004, doc: 'Another item is at this position of the cell.' },
  cell_edges_full: {
    code: -32004,
    doc: 'The cell has the `max` of its `limit` (fields or items); remove some, or use another cell.',
  },
  cell_quota_exceeded: {
    code: -32004,
    doc: 'The account would store more than `max` of its `limit` (cells or bytes); deleted cells count until they are removed for good.',
  },
  cell_version_conflict: { code: -32004, doc: 'The cell is at `current_version`, not `expected_version`.' },
} as const satisfies Record<string, Entry>

export type BuiltinReason = keyof typeof reasons
/** The reasons of the service, and those that a consumer declared. */
export type Reason = BuiltinReason | (keyof ConsumerReasons & string)

export const catalogue: Readonly<Record<BuiltinReason, Entry>> = reasons

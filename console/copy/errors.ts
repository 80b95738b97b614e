import type { BuiltinReason } from '../../src/reasons.ts'
import { count, list, number } from './common.ts'

/** A refused call, as the typed client throws it. */
export type Refused = { reason: string; data: Record<string, unknown>; status: number }
type Data = Record<string, unknown>
type ClientReason = 'transport_failed' | 'not_connected' | 'connection_lost' | 'passkey_elsewhere' | 'no_room'

const later = ({ retry_after }: Data): string =>
  typeof retry_after !== 'number'
    ? 'Try again later.'
    : `Try again in ${retry_after < 120 ? count(retry_after, 'second') : count(Math.ceil(retry_after / 60), 'minute')}.`
const full = ({ limit, max }: Data): string => `At most ${max} ${limit}.`

type Issue = { path?: unknown[]; message?: string }
const issuesOf = ({ issues, detail }: Data): string =>
  Array.isArray(issues) && issues.length > 0
    ? issues
        .map(({ path = [], message }: Issue) =>
          path.length ? `${path.join('.')}: ${message}` : `${message}`,
        )
        .join(' ')
    : typeof detail === 'string'
      ? detail
      : ''

/** What each reason means to the person who meets it, and what to do next. */
const texts: Record<BuiltinReason | ClientReason, string | ((data: Data) => string)> = {
  transport_failed: 'The server did not answer.',
  not_connected: 'There is no connection to the server.',
  passkey_elsewhere: 'Passkeys do not work at this address of the server. Open it by its public URL.',
  no_room: 'Nothing fits between these two positions. Move one of them first.',
  connection_lost: 'The connection was lost.',

  parse_error: 'The server did not understand this page. Reload it.',
  invalid_request: 'The server did not understand this page. Reload it.',
  method_not_found: 'This server does not support this.',
  invalid_params: (data) => issuesOf(data) || 'Something in the request is not valid.',
  internal_error: ({ request_id }) =>
    typeof request_id === 'string'
      ? `The server failed. Its log says why, under request ${request_id}.`
      : 'The server failed. Its log says why.',
  service_unavailable: 'The database cannot be reached right now. Try again in a moment.',
  storage_full: 'The disk of the server is full. Reading still works; saving will once there is room.',
  timeout: 'This took too long, so nothing was changed. Try again, or ask for less.',
  queue_overflow: 'Too many requests at once. Try again in a moment.',
  request_cancelled: 'This was cancelled before it began.',
  rate_limited: (data) => `Too many attempts. ${later(data)}`,
  authentication_required: 'You are no longer signed in.',
  account_vanished: 'Your account or actor has been removed.',
  credential_type_required: 'This needs another sign-in method.',
  token_scope_required: 'The scope of this token does not cover this.',
  insufficient_permissions: ({ required_roles }) =>
    Array.isArray(required_roles)
      ? `This needs the role ${list(required_roles)}.`
      : 'You lack the role for this.',
  second_factor_enrolment_required:
    'One of your roles requires a second factor. Add one under My account, Security, and sign in with it.',
  fresh_authentication_required: 'Confirm that it is you, then try again.',
  actor_required: 'First choose which actor you act as.',
  actor_not_on_account: 'You can no longer act as this actor. Choose another.',
  no_actors_on_account: 'This account has no actor to act as.',

  rate_limit_exceeded: (data) => `Too many attempts. ${later(data)}`,
  busy: (data) => `The server is too busy right now. ${later(data)}`,
  batch_answer_too_large: 'This is too much for one answer. Ask for less.',
  shutting_down: 'The server is stopping. Try again in a moment.',
  draining: 'This node is being taken out of service. Try again in a moment.',
  node_not_found: 'There is no such node, or it has ended.',
  forbidden_origin: () =>
    `This server does not accept calls from ${location.origin}. Add it to CELLKEEP_ALLOWED_ORIGINS.`,
  not_found: 'This server does not support this.',
  method_not_allowed: 'This server does not support this.',
  payload_too_large: 'This is larger than the server accepts.',
  upgrade_required: 'The server did not understand this page. Reload it.',
  invalid_upgrade: 'The server did not understand this page. Reload it.',
  unsupported_media_type: 'The server did not understand this page. Reload it.',
  invalid_json_body: 'The server did not understand this page. Reload it.',
  invalid_request_body: (data) => issuesOf(data) || 'Something in the request is not valid.',
  invalid_query_params: (data) => issuesOf(data) || 'Something in the address is not valid.',
  schema_drift:
    'The database belongs to another version. Run `cellkeep migrate`, or start the version that it belongs to.',
  db_unreachable:
    'The database does not answer. Check that it runs and that CELLKEEP_DATABASE_URL points to it.',
  db_other_database: 'This is not the same database as before. Restart the node to accept it.',
  stale_primary:
    'Only a database server that has been replaced answers. Bring up the new primary, or restart the node.',
  db_read_only:
    'The database is a standby and accepts no changes. Point CELLKEEP_DATABASE_URL at the primary.',

  flow_expired: 'This took too long, or was started in another browser. Start over.',
  second_factor_required: 'One more step: your second factor.',
  invalid_second_factor: 'This code is wrong or already used, or the passkey does not match.',
  invalid_code: 'The authenticator shows another code now. Try the next one.',
  second_factor_missing: 'Add an authenticator or a passkey first; recovery codes only stand in for one.',
  second_factor_policy:
    'One of your roles requires a second factor. Add another before you remove the last one.',
  passkey_limit: 'This account has reached its limit of passkeys. Remove one first.',
  passkey_known: 'This passkey is already in use.',
  passkey_refused: 'The passkey was not accepted. Start over.',
  provider_not_found: 'This way to sign in is no longer offered.',
  provider_unavailable: (data) => `The provider does not answer. ${later(data)}`,
  oidc_failed: 'The provider did not say who you are. Start over.',
  oidc_not_allowed: 'The provider knows you, but this server does not let you in.',
  oidc_unknown_account: 'No account is linked to this identity. Ask for an invite.',
  oidc_account_exists:
    'An account with this e-mail exists. Sign in to it another way, then link the provider.',
  oidc_linked_elsewhere: 'This identity is linked to another account, or this account to another identity.',
  last_sign_in_method: 'This is your only way to sign in. Add another first.',
  invalid_credentials: 'Name or password is wrong.',
  already_bootstrapped: 'This server is already set up. Sign in.',
  invalid_token: 'That is not the token in the server’s `bootstrap_token` file. Look for spaces.',
  token_file_missing: 'The server has no token file. `cellkeep bootstrap-token reset` makes one.',
  username_taken: 'This name is taken. Choose another.',
  no_matching_invite: 'No invite matches exactly this name and e-mail.',
  signup_conflict: 'This name or e-mail cannot be used.',
  ticket_not_found: 'This link was used, has expired, or is mistyped. Ask for another.',
  privileged_target: 'This person is an admin: only the server’s operator can change how they sign in.',
  no_recipient: 'No message can be sent: there is no e-mail, or this server sends none.',
  account_not_found: 'There is no such account, or its state does not allow this.',
  cannot_delete_keeper:
    'This account is the keeper. Hand the role over first, with `cellkeep keeper transfer`.',
  cannot_delete_last_admin: 'This is the last admin. Make somebody else an admin first.',
  purge_not_confirmed: 'A purge must be confirmed.',
  unknown_method: 'The scope names a method that does not exist.',
  invite_not_found: 'This invite has been used or deleted.',
  invite_duplicate: 'There is already an open invite for this.',
  invite_account_exists_username: 'An account with this name exists.',
  invite_account_exists_email: 'An account with this e-mail exists.',
  actor_search_scope_required: 'Only an admin can search everybody.',
  actor_not_found: 'There is no such actor.',
  to_actor_required: 'This person has several actors. Choose one.',
  role_grant_not_found: 'This role has already ended.',
  cannot_revoke_last_admin: 'This is the last admin. Make somebody else an admin first.',
  role_grant_builtin_scoped: 'Keeper and admin are held everywhere, never in one place.',
  role_not_web_grantable: 'This role can only be given on the server itself.',
  role_not_self_service_eligible: 'You cannot take this role yourself: somebody has to give it.',
  role_grant_scope_destroyed: 'This place no longer exists; no role can be given there.',
  role_grant_scope_not_applicable: 'This role does not apply to this kind of place.',

  role_grant_offer_not_found: 'This offer does not exist, or is not yours to answer.',
  role_grant_offer_terminal: 'This offer has ended.',
  role_grant_offer_expired: 'The time to answer this offer has run out.',
  role_grant_offer_actor_mismatch: 'This offer is for another of your actors.',
  role_grant_offer_limit: (data) =>
    data.limit === 'offers'
      ? `Too many of your offers are waiting for an answer. ${full(data)}`
      : `You have reached your limit of roles. ${full(data)}`,
  role_grant_offer_role_not_grantable: 'This role can only be given on the server itself.',
  role_grant_offer_not_authorized: 'Only a holder of this role can offer it.',
  role_grant_offer_self_target: 'You cannot offer yourself a role.',
  role_grant_offer_actor_account_mismatch: 'This actor does not belong to that account.',

  email_taken: 'An account with this e-mail exists.',
  last_actor: 'An account has to keep one actor.',
  actor_limit: 'This account has reached its limit of actors.',
  role_grant_path_not_allowed: 'This role cannot be given this way.',

  cell_not_found: 'There is no such cell, or you may not see it.',
  cell_path_admin_only: 'Only an admin can set the path of a cell.',
  cell_visibility_manage_only: 'Only its owner or an admin can change who sees this cell.',
  cell_create_forbidden: 'The rules of this server do not let you create this cell.',
  cell_kind_in_data: 'The data must not have a key “kind” at its top.',
  cell_kind_empty: 'Enter a kind, or leave it out.',
  cell_data_invalid: (data) => issuesOf(data) || 'The rules of this server refuse this data.',
  cell_get_requires_id_or_path: 'Name a cell by its id or its path.',
  cell_field_list_requires_source_or_target: 'Name one end of the relations.',
  cell_item_list_requires_parent_or_child: 'Name one end of the items.',
  cell_list_created_by_requires_auth: 'Sign in to filter by owner.',
  cell_list_shared_with_requires_auth: 'Sign in to see what is shared with you.',
  cell_clone_too_large: ({ limit, max }) =>
    `Too much for one copy: at most ${number(Number(max))} ${limit === 'depth' ? 'levels' : limit}. Copy it alone, or a part of it.`,
  cell_grant_not_found: 'This share has already ended.',
  cell_grant_unknown_role: 'There is no such role.',
  cell_grant_unknown_actor: 'There is no such actor.',
  cell_grant_principal_is_owner: 'The owner can already see it.',
  cell_path_taken: 'Another cell has this path.',
  cell_item_position_taken: 'Somebody moved items here at the same time. Try again.',
  cell_edges_full: (data) => `This cell is full. ${full(data)}`,
  cell_quota_exceeded: (data) => `Your account has reached its storage limit. ${full(data)}`,
  idempotency_key_reused: 'This was already sent with other content. Send it again as something new.',
  idempotency_replayed: 'This was already done. Look again to see the result.',
  cell_version_conflict: 'Somebody else has saved this cell since you opened it.',
}

/** After these a change may have been made. */
const unsure = ['transport_failed', 'connection_lost']

/** A sentence for people, about what may have changed something. */
export function explain(error: Refused): string {
  const text = explainRead(error)
  const isUnsure = error.data.outcome === 'unknown' || unsure.includes(error.reason)
  return isUnsure ? `${text} Check whether it was done before you repeat it.` : text
}

/** The same about what only reads. Reasons of a consumer's own methods have only their name, or a detail. */
export function explainRead({ reason, data }: Refused): string {
  if (data.outcome === 'unknown') return 'The connection to the database was lost.'
  const text = Object.hasOwn(texts, reason) ? texts[reason as BuiltinReason] : undefined
  if (text === undefined) return issuesOf(data) || `This was refused: ${reason}.`
  return typeof text === 'string' ? text : text(data)
}

/** The message about one input, by its name in the request. */
export function faultOf(error: Refused | null, name: string): string | null {
  const issues = error?.data.issues
  if (!Array.isArray(issues)) return null
  const found = (issues as Issue[]).find(({ path }) => path?.[0] === name)
  return found?.message ?? null
}

import { z } from 'zod'
import {
  attemptedGrant,
  cell,
  cellGrant,
  credentialType,
  endedAll,
  endedCounts,
  factor,
  field,
  guarded,
  guardedTarget,
  id,
  item,
  noAccount,
  offer,
  onlyVia,
  reasonOf,
  scope,
  supersedeReason,
  ticket,
  via,
  wantedNode,
} from './event-fields.ts'
import type { ConsumerEvents } from './wire/consumer.ts'
import { Uuid } from './wire/types.ts'

/**
 * Every audit event of the service with its metadata: ids and structural values only, never what a caller typed.
 * `failure` is the metadata of a refused attempt.
 */
export const events = {
  login: {
    success: z.strictObject({ session_id: id, methods: z.array(id), provider: id.optional(), ...via }),
    failure: z.union([
      reasonOf('invalid_credentials', 'passkey_counter'),
      reasonOf('oidc_failed', 'oidc_not_allowed', 'oidc_unknown_account', 'oidc_account_exists').extend({
        provider: id,
      }),
    ]),
  },
  reauthenticate: {
    success: z.strictObject({ session_id: id, methods: z.array(id) }),
    failure: reasonOf('invalid_credentials'),
  },
  logout: { success: z.strictObject({ session_id: id }) },
  bootstrap: {
    success: z.strictObject({ session_id: id, role_grant_ids: z.array(Uuid) }),
    failure: reasonOf('invalid_token', 'token_file_missing', 'username_taken'),
  },
  signup: {
    success: z.strictObject({
      session_id: id,
      open_signup: z.boolean(),
      invite_id: Uuid.optional(),
      provider: id.optional(),
    }),
    failure: reasonOf('no_matching_invite', 'signup_conflict').extend({ open_signup: z.boolean() }),
  },
  password_change: {
    success: z.strictObject(endedCounts),
    failure: reasonOf('invalid_credentials', 'concurrent_change').extend(credentialType),
  },
  password_reset: {
    success: z.strictObject({ ticket_id: Uuid, sessions_revoked: z.int(), tokens_revoked: z.int() }),
    failure: reasonOf('ticket_not_found'),
  },
  account_secure: {
    success: z.strictObject({
      sessions_revoked: z.int(),
      tokens_revoked: z.int(),
      ...credentialType,
      ...via,
    }),
  },
  session_revoke: {
    success: z.union([
      z.strictObject({ session_id: id, ...credentialType, ...via }),
      z.strictObject({ session_id: id, cause: z.enum(['cap', 'replaced', 'rotated']) }),
    ]),
  },
  session_revoke_all: { success: endedAll, failure: noAccount },
  second_factor: {
    success: z.null(),
    failure: reasonOf('invalid_second_factor').extend({ method: id }),
  },
  factor_add: { success: z.strictObject(factor) },
  factor_remove: { success: z.strictObject(factor), failure: guardedTarget },
  token_create: {
    success: z.strictObject({
      token_id: id,
      token_scope: z.enum(['full', 'read_only', 'methods']),
      expires_at: z.string().nullable(),
      ...credentialType,
      ...via,
    }),
  },
  token_revoke: {
    success: z.union([
      z.strictObject({ token_id: id, ...credentialType, ...via }),
      z.strictObject({ token_id: id, cause: z.enum(['cap']), ...via }),
    ]),
  },
  token_revoke_all: { success: endedAll, failure: noAccount },
  account_create: {
    success: z.strictObject({
      role_grant_ids: z.array(Uuid).optional(),
      imported: z.literal(true).optional(),
      ...via,
    }),
  },
  account_update: {
    success: z.strictObject({
      change: z.enum(['email', 'email_verified', 'email_cleared', 'username', 'unlock']),
      ticket_id: Uuid.optional(),
      ...via,
    }),
    failure: guardedTarget,
  },
  ticket_create: {
    success: z.strictObject({
      ...ticket,
      delivery: z.enum(['mailed', 'revealed']),
      expires_at: z.string(),
      invite_id: Uuid.optional(),
      ...credentialType,
      ...via,
    }),
    failure: guardedTarget,
  },
  ticket_revoke: { success: z.strictObject({ ...ticket, ...credentialType, ...via }) },
  account_delete: { success: z.strictObject(endedCounts), failure: guarded },
  account_undelete: {
    success: z.strictObject({ actor_count: z.int(), ...credentialType, ...via }),
    failure: noAccount,
  },
  account_purge: {
    // The only names in the log: after the purge, nothing else shows whose ids these were.
    success: z.strictObject({
      username: z.string(),
      email: z.string().nullable(),
      ...credentialType,
      ...via,
    }),
    failure: guarded,
  },
  actor_create: { success: onlyVia },
  actor_rename: { success: onlyVia },
  actor_delete: { success: onlyVia },
  actor_undelete: { success: onlyVia },
  actor_purge: { success: onlyVia },
  invite_create: {
    success: z.strictObject({ invite_id: Uuid, ...via }),
    failure: reasonOf(
      'invite_account_exists_username',
      'invite_account_exists_email',
      'invite_duplicate',
    ).extend(via),
  },
  invite_delete: {
    success: z.strictObject({ invite_id: Uuid, ...via }),
    failure: reasonOf('invite_not_found').extend({ attempted_invite_id: Uuid, ...via }),
  },
  app_settings_update: {
    success: z.strictObject({
      setting: z.enum(['open_signup']),
      old_value: z.boolean(),
      new_value: z.boolean(),
      ...via,
    }),
  },
  role_grant_create: {
    success: z.strictObject({
      role: z.string(),
      role_grant_id: Uuid,
      ...scope,
      expires_at: z.string().nullable(),
      source: z.enum(['offer', 'assign', 'self_service', 'library', 'keeper_transfer']),
      source_offer_id: Uuid.optional(),
      path: z.string().optional(),
      extended: z.literal(true).optional(),
      ...via,
    }),
    failure: reasonOf('role_not_web_grantable').extend(attemptedGrant),
  },
  role_grant_revoke: {
    success: z.strictObject({
      role: z.string(),
      role_grant_id: Uuid,
      ...scope,
      cause: z.enum(['admin', 'self_service', 'library', 'scope_destroyed', 'keeper_transfer']),
      ...via,
    }),
    failure: reasonOf(
      'role_not_web_grantable',
      'role_grant_path_not_allowed',
      'cannot_revoke_last_admin',
    ).extend({ role: z.string(), role_grant_id: Uuid, ...via }),
  },
  role_grant_offer_create: {
    success: offer.extend({ to_account_id: Uuid, updated: z.boolean() }),
    failure: reasonOf(
      'role_grant_offer_role_not_grantable',
      'role_grant_offer_not_authorized',
      'role_grant_offer_self_target',
      'role_grant_offer_actor_account_mismatch',
    ).extend(attemptedGrant),
  },
  node_drain: { success: wantedNode },
  node_resume: { success: wantedNode },
  role_grant_offer_accept: { success: offer.extend({ role_grant_id: Uuid }) },
  role_grant_offer_decline: { success: offer },
  role_grant_offer_retract: { success: offer },
  // src/cleanup/steps.ts writes this row in SQL.
  role_grant_offer_expire: { success: offer },
  role_grant_offer_supersede: {
    success: offer.extend({ reason: supersedeReason, cause_id: Uuid.nullable(), ...via }),
  },
  cell_create: { success: cell },
  cell_update: { success: cell },
  cell_delete: { success: cell },
  cell_field_set: { success: field },
  cell_field_delete: { success: field },
  cell_item_insert: { success: item },
  cell_item_delete: { success: item },
  cell_item_move: {
    success: z.strictObject({
      parent_id: Uuid,
      child_id: Uuid,
      position_old: z.string(),
      position_new: z.string(),
    }),
  },
  cell_clone: { success: z.strictObject({ source_id: Uuid, new_id: Uuid }) },
  cell_grant_create: { success: cellGrant },
  cell_grant_revoke: { success: cellGrant },
} as const satisfies Record<string, { success: z.ZodType; failure?: z.ZodType }>

/** Metadata by type: the service's own events and those that a consumer declared. */
type Metadata = { [K in BuiltinEventType]: z.input<(typeof events)[K]['success']> } & ConsumerEvents

export type BuiltinEventType = keyof typeof events
export type EventType = keyof Metadata
export type EventMetadata<K extends EventType> = Metadata[K]
export type FailureMetadata<K extends BuiltinEventType> = (typeof events)[K] extends {
  failure: infer F extends z.ZodType
}
  ? z.input<F>
  : never
/** Metadata of a refused attempt: the failure shape of a service event, or the metadata of a consumer's event. */
export type AttemptMetadata<K extends EventType> = K extends BuiltinEventType
  ? FailureMetadata<K> & Record<string, unknown>
  : EventMetadata<K> & (Record<string, unknown> | null)

import { z } from 'zod'
import { ticketPurposes } from './registry/messages.ts'
import { Uuid } from './wire/types.ts'

/** Fields and forms that the metadata of several events share. */

/** Why an offer was superseded. */
export const supersedeReason = z.enum([
  'sibling_accepted',
  'role_grant_revoked',
  'scope_destroyed',
  'grantor_lost_authority',
])
export const id = z.string()
export const credentialType = { credential_type: z.string().nullable() }
/** Present in rows of operator and library calls, which have no caller. */
export const via = { via: z.string().optional() }
export const scope = { scope_kind: z.string().nullable(), scope_id: Uuid.nullable() }
export const offer = z.strictObject({ offer_id: Uuid, role: z.string(), ...scope })
/** What a refused caller addressed; the role only if it is registered. */
export const attemptedGrant = {
  role: z.string().optional(),
  attempted_to_account_id: Uuid,
  attempted_to_actor_id: Uuid.optional(),
  attempted_scope_id: Uuid.optional(),
}
export const cell = z.strictObject({ cell_id: Uuid })
export const field = z.strictObject({ source_id: Uuid, name: z.string(), target_id: Uuid })
export const item = z.strictObject({ parent_id: Uuid, position: z.string(), child_id: Uuid })
export const cellGrant = z.strictObject({
  cell_id: Uuid,
  grant_id: Uuid,
  principal: z.union([
    z.strictObject({ actor_id: Uuid }),
    z.strictObject({ role: z.string(), scope_id: Uuid.nullable() }),
  ]),
  ...via,
})
export const wantedNode = z.strictObject({ node_id: id, ...via })
export const endedAll = z.strictObject({ count: z.int(), ...credentialType, ...via })
export const endedCounts = { sessions_revoked: z.int(), tokens_revoked: z.int(), ...credentialType, ...via }
export const noAccount = reasonOf('account_not_found').extend({ attempted_account_id: Uuid, ...via })
export const guarded = z.union([
  reasonOf('cannot_delete_keeper', 'cannot_delete_last_admin').extend(via),
  noAccount,
])
/** An admin may not change how this account signs in, no message reaches it, or it does not exist. */
export const guardedTarget = z.union([reasonOf('privileged_target', 'no_recipient').extend(via), noAccount])
export const ticket = { ticket_id: Uuid, purpose: z.enum(ticketPurposes) }
/** `factor_id`: the id of a link or TOTP, or a digest of the id of a passkey. */
export const factor = {
  factor: z.enum(['totp', 'recovery_codes', 'passkey', 'link']),
  factor_id: id.optional(),
  provider: id.optional(),
  ...credentialType,
  ...via,
}
export const onlyVia = z.strictObject(via).nullable()

export function reasonOf<const R extends string>(...reasons: R[]) {
  return z.strictObject({ reason: z.enum(reasons) })
}

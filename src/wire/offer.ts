import { z } from 'zod'
import { Uuid } from './types.ts'

/** The wire form of an offer: exactly these keys. */
export const Offer = z.strictObject({
  offer_id: Uuid,
  from_actor_id: Uuid,
  from_account_id: Uuid,
  to_account_id: Uuid,
  to_actor_id: Uuid.nullable(),
  role: z.string(),
  scope_kind: z.string().nullable(),
  scope_id: Uuid.nullable(),
  message: z.string().nullable(),
  created_at: z.string(),
  expires_at: z.string(),
  grant_expires_at: z.string().nullable(),
  accepted_at: z.string().nullable(),
  declined_at: z.string().nullable(),
  decline_reason: z.string().nullable(),
  retracted_at: z.string().nullable(),
  superseded_at: z.string().nullable(),
  resulting_role_grant_id: Uuid.nullable(),
})
export type Offer = z.output<typeof Offer>

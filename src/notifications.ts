import { z } from 'zod'
import { supersedeReason } from './events.ts'
import type { ConsumerNotifications } from './wire/consumer.ts'
import { Offer } from './wire/offer.ts'
import { Uuid } from './wire/types.ts'

const offer = z.strictObject({ offer: Offer })

/**
 * Every notification that sockets of an account receive, with its params. The recipient account is not part of the
 * params.
 */
export const notifications = {
  role_grant_offer_received: offer,
  role_grant_offer_retracted: offer,
  role_grant_offer_accepted: offer,
  role_grant_offer_declined: offer,
  role_grant_offer_supersede: z.strictObject({
    offer: Offer,
    reason: supersedeReason,
    cause_id: Uuid.nullable(),
  }),
  role_grant_revoke: z.strictObject({
    role_grant_id: Uuid,
    role: z.string(),
    scope_id: Uuid.nullable(),
    reason: z.string().optional(),
  }),
} as const satisfies Record<string, z.ZodType>

type Params = {
  [K in keyof typeof notifications]: z.input<(typeof notifications)[K]>
} & ConsumerNotifications

/** The notifications of the service, and those that a consumer declared. */
export type NotificationMethod = keyof Params & string
export type NotificationParams<K extends NotificationMethod> = Params[K]
export type Notification<K extends NotificationMethod = NotificationMethod> = {
  account_id: string
  method: K
  params: NotificationParams<K>
}
/** An account by its id, or an actor, for the account that it is of. */
export type Recipient = string | { readonly actor_id: string }
export type Notify = <K extends NotificationMethod>(
  to: Recipient,
  method: K,
  params: NotificationParams<K>,
) => void

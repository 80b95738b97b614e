import { z } from 'zod'
import type { TokenScope } from './auth/identity.ts'
import { supersedeReason } from './event-fields.ts'
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

const offers = ['role_grant_offer_list', 'role_grant_offer_history']
/** The methods that show the same as a notification does. A consumer's notifications are not listed. */
const shownBy = new Map<string, readonly string[]>(
  Object.entries({
    role_grant_offer_received: offers,
    role_grant_offer_retracted: offers,
    role_grant_offer_accepted: offers,
    role_grant_offer_declined: offers,
    role_grant_offer_supersede: offers,
  } satisfies Record<Exclude<keyof typeof notifications, 'role_grant_revoke'>, readonly string[]>),
)

/**
 * A token that names methods receives only what one of them shows as well. `GET /status` shows the role grants of an
 * account to each of its tokens, so each receives that one was revoked.
 */
export const isHeardBy = (scope: TokenScope, notification: string): boolean =>
  scope.kind !== 'methods' ||
  notification === 'role_grant_revoke' ||
  scope.methods.some((method) => shownBy.get(notification)?.includes(method))

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
/** An account by its id, or an actor, for the account that it belongs to. */
export type Recipient = string | { readonly actor_id: string }
export type Notify = <K extends NotificationMethod>(
  to: Recipient,
  method: K,
  params: NotificationParams<K>,
) => void

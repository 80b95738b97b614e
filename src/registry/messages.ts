/** Messages to people, as a transport gets them. */

/** What happened to an account that its owner is told of. */
export type Notice =
  | 'password_changed'
  | 'email_change_requested'
  | 'email_changed'
  | 'username_changed'
  | 'second_factor_added'
  | 'second_factor_removed'
  | 'second_factor_attempts'
  | 'recovery_code_used'
  | 'recovery_codes_replaced'
  | 'passkey_added'
  | 'passkey_removed'
  | 'passkey_counter'
  | 'link_added'
  | 'link_removed'

/** What a link in a message is for. */
export const ticketPurposes = ['password_reset', 'email_verify', 'email_change', 'invite'] as const
export type TicketPurpose = (typeof ticketPurposes)[number]

export type Message = {
  /** The same for every try to deliver this message. */
  id: string
  to: string
  locale: string
} & (
  | {
      purpose: Exclude<TicketPurpose, 'invite'>
      username: string
      /** Leads to a page with a button to press; the token in it works once. */
      link: string
      expires_at: string
    }
  | { purpose: 'invite'; link: string; expires_at: string }
  | { purpose: 'notice'; notice: Notice; username: string; at: string }
  | { purpose: 'test' }
)

/**
 * Delivers a message. Resolves once it is handed over; throws `DeliveryRefused` if it never will be. After any other
 * error it is called again later. `signal` aborts after 30 s.
 */
export type Deliver = (
  message: Message,
  context: { signal: AbortSignal; attempt: number },
) => Promise<unknown> | unknown

/** Thrown by `deliver`: this message cannot be delivered, so do not try again. */
export class DeliveryRefused extends Error {
  override readonly name = 'DeliveryRefused'
}

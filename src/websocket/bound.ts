import type { Caller, Carriers } from '../auth/caller.ts'
import type { Credential } from '../auth/identity.ts'
import type { Message } from '../core/dispatch.ts'
import { refusal } from '../errors.ts'
import type { Committed } from '../realtime/committed.ts'
import { isSameCredential } from '../realtime/connection.ts'

/** What a socket is bound to from its upgrade to its close. */
export type Bound = {
  account_id: string
  credential: Credential
  /** Only the credential that authenticated the upgrade; others sent along are dropped. */
  carriers: Carriers
  ip: string
  request_id: string
  /** The actor for messages that name none. */
  actor_id: string | null
}

/** One request in flight on a socket. */
export class InFlightRequest implements Message {
  state: 'waiting' | 'begun' | 'cancelled' = 'waiting'
  /** Notifications and closings that the call caused on its own socket; sent after its reply. */
  readonly held: Committed[] = []
  /** The credential no longer authenticates as the caller that opened the socket. */
  isLost = false
  readonly id: string | number | null
  readonly #bound: Bound
  constructor(id: string | number | null, bound: Bound) {
    this.id = id
    this.#bound = bound
  }
  admit(caller: Caller | null): void {
    if (isOwn(caller, this.#bound)) return
    this.isLost = true
    throw refusal('authentication_required')
  }
  begin(): void {
    if (this.state === 'cancelled') throw refusal('request_cancelled')
    this.state = 'begun'
  }
}

/** Whether a credential still authenticates as the one that opened the socket. */
export const isOwn = (caller: Caller | null, bound: Bound): boolean =>
  caller !== null && isSameCredential({ account_id: caller.account.id, credential: caller.credential }, bound)

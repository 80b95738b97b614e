import type { Carriers } from '../auth/carriers.ts'
import type { Credential } from '../auth/identity.ts'

/** What a socket is bound to for its life (contract 1, section 11.1). */
export type Bound = {
  account_id: string
  credential: Credential
  /** The one credential that won; another that came along would be another one's tomorrow. */
  carriers: Carriers
  ip: string
  request_id: string
  /** The actor of messages that name none. */
  actor_id: string | null
}

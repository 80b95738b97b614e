import type { Carriers } from '../auth/caller.ts'
import type { Credential } from '../auth/identity.ts'

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

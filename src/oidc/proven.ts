import type { OidcProvider } from '../config/oidc.ts'
import type { RouteContext } from '../core/route.ts'
import type { Flow } from '../sign-in/flow.ts'
import type { Identity } from './identity.ts'

/** What a provider has proven in a flow. */
export type Proven = { provider: OidcProvider; identity: Identity; flow: Flow }

/** The outcome; `linked`: to an account that existed before. */
export type Finished = {
  created: boolean
  linked: boolean
  session?: { account_id: string; cookie: string }
}

/** A session may come along. */
export const auth = { account: 'optional', actor: 'none' } as const
export type Context = RouteContext<typeof auth>

import type { Credential } from '../auth/identity.ts'
import type { App } from '../core/app.ts'
import { guardCredential, guardRole, resolveActor } from '../core/guards.ts'
import type { AuthSpec } from '../core/method.ts'
import type { Clock } from '../db/db.ts'
import { refusal, ServiceError } from '../errors.ts'
import type { RequestInfo } from '../http/jsonrpc.ts'
import { hasExpired, isSameCredential, type Lost } from '../realtime/connection.ts'

/** Who reads the stream, and when that right expires at the latest. */
export type Authority = {
  account_id: string
  credential: Credential
  /** The token itself, for a daemon token. */
  daemon?: string | undefined
  actor_id: string
  /** When the admin grant expires. */
  role_expires_at: string | null
}

const auth = { account: 'required', actor: 'required', roles: ['admin'] } as const satisfies AuthSpec
/** The stream hands out what `audit_log_list` does, so a token that reaches the method reaches the stream. */
const target = { scope: 'surface:audit_stream', method: 'audit_log_list', side_effects: false }
const roleLosses = new Set([
  'insufficient_permissions',
  'actor_not_on_account',
  'no_actors_on_account',
  'second_factor_enrolment_required',
])

/**
 * Runs the guards of the stream in the order of every RPC method: account, token scope, query, actor, role.
 * `readActing` validates the query when its turn comes.
 */
export async function authorise(
  app: App,
  { carriers, ip, trace }: RequestInfo,
  readActing: () => string | undefined,
  atOnce = false,
): Promise<Authority> {
  const caller = await app.callers.read({ carriers, withActors: true, ip, atOnce })
  if (caller) trace.account_id = caller.account.id
  guardCredential(auth, caller, target)
  const actor = resolveActor(auth, caller, readActing())
  guardRole(auth, actor?.role_grants ?? [])
  if (!caller || !actor) throw refusal('authentication_required')
  const grant = actor.role_grants.find(({ role, scope_id }) => role === 'admin' && scope_id === null)
  return {
    account_id: caller.account.id,
    credential: caller.credential,
    daemon: caller.credential.type === 'daemon_token' ? carriers.daemon : undefined,
    actor_id: actor.id,
    role_expires_at: grant?.expires_at ?? null,
  }
}

/** Reads the authority again. Refuses if the request now authenticates with a different credential. */
export async function authoriseAgain(app: App, info: RequestInfo, held: Authority): Promise<Authority> {
  const now = await authorise(app, info, () => held.actor_id, true)
  if (!isSameCredential(now, held)) throw refusal('authentication_required')
  return now
}

/** What a rejection of `authoriseAgain` means for an open stream; undefined: nothing is known, so try again. */
export function lossOf(error: unknown, { credential }: Authority, clock: Clock): Lost | undefined {
  const { reason } = error instanceof ServiceError ? error.data : { reason: '' }
  if (reason === 'authentication_required') return hasExpired(credential, clock) ? 'expired' : 'revoked'
  return roleLosses.has(reason) ? 'role_lost' : undefined
}

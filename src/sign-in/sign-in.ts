import type { Carriers } from '../auth/caller.ts'
import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { auditEnded, type Proof, type StartedSession, startSession } from '../sessions/sessions.ts'
import { requireSecondStep } from './second-step.ts'

export type SignIn = {
  account_id: string
  proof: Proof
  /** Where the proof came from, if a provider gave it. */
  provider?: string | undefined
  presented: Carriers
  /** The address to remember as one that the account signs in from. */
  ip?: string | undefined
  /** The session that a renewed proof replaces; left out for a sign-in. */
  renews?: string | undefined
}

/**
 * Signs an account in once its owner has proven who they are: opens the session, or refuses with
 * `second_factor_required` if a second factor is still to be proven. Runs inside the caller's transaction, which holds
 * the account lock; after the commit the caller sends the cookie and calls `endForeignSession`.
 */
export async function signIn(
  app: App,
  { db, audit }: Pick<Work, 'db' | 'audit'>,
  { account_id, proof, provider, presented, ip, renews }: SignIn,
): Promise<StartedSession> {
  const { methods, strong } = proof
  const intent = renews === undefined ? 'sign_in' : 'reauthenticate'
  if (!strong) await requireSecondStep(app, db, { account_id, methods, provider, intent, session_id: renews })
  const session = await startSession(app, db, {
    account_id,
    proof,
    presented,
    ip,
    cause: renews === undefined ? 'replaced' : 'rotated',
  })
  const { session_id } = session
  if (renews === undefined)
    audit('login', { session_id, methods: [...methods], ...(provider !== undefined && { provider }) })
  else audit('reauthenticate', { session_id, methods: [...methods] }, { target_account_id: account_id })
  auditEnded(audit, session)
  return session
}

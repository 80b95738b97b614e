import { lockWithSession } from '../accounts/locks.ts'
import type { OwnSession } from '../accounts/prove-password.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import type { RouteHold } from '../core/route.ts'
import { refusal } from '../errors.ts'
import { signInBuckets } from '../second-factor/sign-in-buckets.ts'
import type { StartedSession } from '../sessions/sessions.ts'
import { takeOwnFlow } from '../sign-in/flow.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { provePasskey, usePasskey } from './passkeys.ts'
import type { AssertionResponse } from './webauthn.ts'

/** The challenge that the presented session has begun. */
export async function takeOwnChallenge(context: OwnSession): Promise<string | null> {
  const { session_id, challenge } = await takeOwnFlow(context, 'passkey')
  if (session_id !== context.credential.id) throw refusal('flow_expired')
  return challenge
}

/** Opens a session in place of the presented one, if the response is that of a passkey of its account. */
export async function renewByPasskey(
  { app, account, credential, carriers, ip }: OwnSession,
  hold: RouteHold,
  challenge: string | null,
  response: AssertionResponse,
): Promise<StartedSession | 'invalid_credentials'> {
  await hold.ip()
  const buckets = await signInBuckets(app.db.readOnly, account.id, ip)
  // The bucket of the account itself.
  await hold.account(buckets.at(-1) as string)
  const proven = await provePasskey(app, app.db, challenge, response)
  if (!proven?.first_factor || !proven.is_verified || proven.account_id !== account.id)
    return 'invalid_credentials'
  const subject = callerSubject({ account }, ip)
  return await mutate(app, 'reauthenticate', { subject }, async (work) => {
    await lockWithSession(work.db, account.id, credential.id)
    if ((await usePasskey(app, work, proven)) !== 'used') return 'invalid_credentials'
    work.afterCommit(() => app.limiters.clear('login_account', buckets))
    return await signIn(app, work, {
      account_id: account.id,
      proof: { methods: ['passkey'], strong: true },
      presented: carriers,
      ip,
      renews: credential.id as string,
    })
  })
}

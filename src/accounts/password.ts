import { z } from 'zod'
import { callerSubject, mutate } from '../core/mutate.ts'
import { route } from '../core/route.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { refusal } from '../errors.ts'
import { crowdOf } from '../limits/limiters.ts'
import { type EndedCredentials, endCredentials } from './ending.ts'
import { Password, PasswordProvided } from './formats.ts'
import { refuseWeak } from './new-password.ts'
import {
  lockProven,
  type OwnSession,
  ownSession,
  type ProvenPassword,
  provePassword,
  type WrongPassword,
} from './prove-password.ts'

/** `POST /password`: sets a new password and ends every session and token of the account. */
export const password = route({
  doc: 'Change the password. All sessions and tokens of the account end; sign in again.',
  method: 'POST',
  path: '/password',
  auth: ownSession,
  before_enrolment: true,
  rate_limit: { ip: 'login_ip', account: 'login_account' },
  input: z.strictObject({ current_password: PasswordProvided, new_password: Password }),
  output: z.object({ ok: z.literal(true), sessions_revoked: z.int(), tokens_revoked: z.int() }),
  errors: ['rate_limited', 'busy', 'invalid_credentials', 'authentication_required', 'account_vanished'],
  async handler({ current_password, new_password }, context) {
    const { app, account, ip } = context
    refuseWeak(app, 'invalid_request_body', ['new_password', new_password], account)
    return await context.attempt(['invalid_credentials'], async (hold) => {
      let hash: string | undefined
      const outcome = await provePassword(context, hold, current_password, async (proven) => {
        hash ??= await app.passwords.hash(new_password, crowdOf(ip))
        return await change(context, proven, hash)
      })
      if (typeof outcome === 'string') return await refuse(context, outcome)
      return { body: { ok: true as const, ...outcome }, cookie: app.sessionCookie.clear() }
    })
  },
})

/** Returns the counts of what ended, or what `lockProven` found instead. */
async function change(
  context: OwnSession,
  { verified, bucket }: ProvenPassword,
  hash: string,
): Promise<EndedCredentials | string> {
  const { app, account, credential, ip } = context
  const subject = { ...callerSubject({ account }, ip), target_account_id: account.id }
  return await mutate(app, 'password_change', { subject }, async ({ db, audit, afterCommit }) => {
    const changed = await lockProven(db, context, verified)
    if (changed !== null) return changed
    await db.run(sql`
      update account set password_hash = ${hash}, hash_foreign = false, updated_at = now(), updated_by = null
      where id = ${account.id}::uuid`)
    const counts = await endCredentials(db, account.id)
    await notify(app, { db, afterCommit }, account.id, 'password_changed')
    audit('password_change', { ...counts, credential_type: credential.type })
    afterCommit(() => app.limiters.clear('login_account', [bucket]))
    return counts
  })
}

async function refuse({ app, account, credential, ip }: OwnSession, reason: WrongPassword): Promise<never> {
  await app.audit.failure({
    event_type: 'password_change',
    outcome: 'failure',
    ...callerSubject({ account }, ip),
    metadata: { reason, credential_type: credential.type },
  })
  throw refusal('invalid_credentials')
}

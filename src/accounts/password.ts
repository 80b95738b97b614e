import { z } from 'zod'
import { requireFresh } from '../auth/fresh.ts'
import { noPassword } from '../auth/password.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { route } from '../core/route.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { refusal } from '../errors.ts'
import { accountKey, crowdOf } from '../limits/limiters.ts'
import { issue } from '../wire/issues.ts'
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

/**
 * `POST /password`: sets a new password and ends every session and token of the account. For an account without a
 * password, a fresh session stands in for the one to prove.
 */
export const password = route({
  doc: 'Change the password, or set the first one with a fresh session and without `current_password`. All sessions and tokens of the account end; sign in again.',
  method: 'POST',
  path: '/password',
  auth: ownSession,
  before_enrolment: true,
  rate_limit: { ip: 'login_ip', account: 'login_account' },
  input: z.strictObject({ current_password: PasswordProvided.optional(), new_password: Password }),
  output: z.object({ ok: z.literal(true), sessions_revoked: z.int(), tokens_revoked: z.int() }),
  errors: [
    'rate_limited',
    'busy',
    'invalid_credentials',
    'authentication_required',
    'account_vanished',
    'fresh_authentication_required',
  ],
  async handler({ current_password, new_password }, context) {
    const { app, account, ip } = context
    refuseWeak(app, 'invalid_request_body', ['new_password', new_password], account)
    return await context.attempt(['invalid_credentials'], async (hold) => {
      if (current_password === undefined) await requireNone(context)
      let hash: string | undefined
      const act = async (proven: ProvenPassword): Promise<EndedCredentials | string> => {
        hash ??= await app.passwords.hash(new_password, crowdOf(ip))
        return await change(context, proven, hash)
      }
      const outcome =
        current_password === undefined
          ? await act({ verified: noPassword, bucket: accountKey(account.id) })
          : await provePassword(context, hold, current_password, act)
      if (typeof outcome === 'string')
        return await refuse(context, outcome === 'invalid_credentials' ? outcome : 'concurrent_change')
      return { body: { ok: true as const, ...outcome }, cookie: app.sessionCookie.clear() }
    })
  },
})

/** Refuses unless the account has no password and its session is fresh. */
async function requireNone(context: OwnSession): Promise<void> {
  const { app, account } = context
  const { point } = app.db.readOnly
  const [stored] = await point<{ password_hash: string }>(sql`
    select password_hash from account where id = ${account.id}::uuid`)
  if (stored?.password_hash !== noPassword)
    throw refusal('invalid_request_body', { issues: [issue(['current_password'], 'invalid_type')] })
  await requireFresh(app, point, context)
}

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
    // The account may have got a second factor during the hashing.
    if (verified === noPassword) await requireFresh(app, db.rows, context)
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

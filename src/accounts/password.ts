import { z } from 'zod'
import { verificationsMax } from '../auth/password.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { type RouteContext, route } from '../core/route.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { refusal } from '../errors.ts'
import { accountKey, crowdOf, keyAt } from '../limits/limiters.ts'
import { seenToday } from '../sessions/addresses.ts'
import { endCredentials } from './ending.ts'
import { Password, PasswordProvided } from './formats.ts'
import { lockIfLive } from './locks.ts'
import { refuseWeak } from './new-password.ts'

const auth = { account: 'required', actor: 'none', credential_types: ['session'] } as const
type Context = RouteContext<typeof auth>
type FailureCause = 'invalid_credentials' | 'concurrent_change'

/** `POST /password`: sets a new password and ends every session and token of the account. */
export const password = route({
  doc: 'Change the password. All sessions and tokens of the account end; sign in again.',
  method: 'POST',
  path: '/password',
  auth,
  rate_limit: { ip: 'login_ip', account: 'login_account' },
  input: z.strictObject({ current_password: PasswordProvided, new_password: Password }),
  output: z.object({ ok: z.literal(true), sessions_revoked: z.int(), tokens_revoked: z.int() }),
  errors: ['rate_limited', 'busy', 'invalid_credentials', 'authentication_required', 'account_vanished'],
  async handler({ current_password, new_password }, context) {
    const { app, account, ip } = context
    refuseWeak(app, 'invalid_request_body', ['new_password', new_password], account)
    const from = crowdOf(ip)
    return await context.attempt(['invalid_credentials'], async (hold) => {
      await hold.ip()
      const stored = await storedHash(context)
      const bucket = stored.seen_today !== null ? keyAt(accountKey(account.id), ip) : accountKey(account.id)
      await hold.account(bucket)
      let verified = stored.password_hash
      if (!(await app.passwords.verify(verified, current_password, from)))
        return await refuse(context, 'invalid_credentials')
      const hash = await app.passwords.hash(new_password, from)
      // A login may rehash the password meanwhile: the stored hash changes, the password does not. Verify again.
      for (let attempt = 1; ; attempt++) {
        const outcome = await change(context, { verified, hash, bucket })
        if (typeof outcome !== 'string')
          return { body: { ok: true as const, ...outcome }, cookie: app.sessionCookie.clear() }
        if (outcome === 'concurrent_change' || attempt === verificationsMax) break
        verified = outcome
        if (!(await app.passwords.verify(verified, current_password, from))) break
      }
      return await refuse(context, 'concurrent_change')
    })
  },
})

async function storedHash({ app, account, ip }: Context) {
  const row = await app.db.readOnly.first<{ password_hash: string; seen_today: boolean | null }>(sql`
    select password_hash, ${seenToday(sql`account.id`, ip)} as seen_today from account
    where id = ${account.id}::uuid and deleted_at is null`)
  if (!row) throw refusal('account_vanished')
  return row
}

/**
 * Returns the counts of what ended. If the stored hash is no longer `verified`, returns the stored hash, or
 * `concurrent_change` if the presented session has ended too.
 */
async function change(
  { app, account, credential, ip }: Context,
  { verified, hash, bucket }: { verified: string; hash: string; bucket: string },
): Promise<{ sessions_revoked: number; tokens_revoked: number } | string> {
  const subject = { ...callerSubject({ account }, ip), target_account_id: account.id }
  return await mutate(app, 'password_change', { subject }, async ({ db, audit, afterCommit }) => {
    const locked = await lockIfLive(db, account.id)
    if (!locked) throw refusal('account_vanished')
    const isLive = await db.first(sql`
      select 1 from auth_session
      where id = ${credential.id} and account_id = ${account.id}::uuid and expires_at > now()`)
    if (locked.password_hash !== verified) return isLive ? locked.password_hash : 'concurrent_change'
    if (!isLive) throw refusal('authentication_required')
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

async function refuse({ app, account, credential, ip }: Context, reason: FailureCause): Promise<never> {
  await app.audit.failure({
    event_type: 'password_change',
    outcome: 'failure',
    ...callerSubject({ account }, ip),
    metadata: { reason, credential_type: credential.type },
  })
  throw refusal('invalid_credentials')
}

import { verificationsMax } from '../auth/password.ts'
import type { RouteContext, RouteHold } from '../core/route.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { accountKey, crowdOf, keyAt } from '../limits/limiters.ts'
import { seenToday } from '../sessions/addresses.ts'
import { holdSession, lockIfLive } from './locks.ts'

export const ownSession = { account: 'required', actor: 'none', credential_types: ['session'] } as const
export type OwnSession = RouteContext<typeof ownSession>
export type WrongPassword = 'invalid_credentials' | 'concurrent_change'

/** The verified hash, and the limiter bucket that a success clears. */
export type ProvenPassword = { verified: string; bucket: string }

/**
 * Verifies the password of the account that is signed in, then acts. A login may rehash the password meanwhile: the
 * stored hash changes, the password does not. `act` then returns what `lockProven` found, and it is verified again.
 */
export async function provePassword<T extends object>(
  { app, account, ip }: OwnSession,
  hold: RouteHold,
  typed: string,
  act: (proven: ProvenPassword) => Promise<T | string>,
): Promise<T | WrongPassword> {
  await hold.ip()
  const stored = await app.db.readOnly.first<{ password_hash: string; seen_today: boolean | null }>(sql`
    select password_hash, ${seenToday(sql`account.id`, ip)} as seen_today from account
    where id = ${account.id}::uuid and deleted_at is null`)
  if (!stored) throw refusal('account_vanished')
  const bucket = stored.seen_today !== null ? keyAt(accountKey(account.id), ip) : accountKey(account.id)
  await hold.account(bucket)
  let verified = stored.password_hash
  for (let attempt = 0; attempt < verificationsMax; attempt++) {
    if (!(await app.passwords.verify(verified, typed, crowdOf(ip))))
      return attempt === 0 ? 'invalid_credentials' : 'concurrent_change'
    const outcome = await act({ verified, bucket })
    if (typeof outcome !== 'string') return outcome
    if (outcome === 'concurrent_change') break
    verified = outcome
  }
  return 'concurrent_change'
}

/**
 * Locks the account while its verified hash is the stored one and the presented session lives; null then. Otherwise
 * the stored hash, or `concurrent_change` if the session has ended too.
 */
export async function lockProven(
  db: Queryable,
  { account, credential }: OwnSession,
  verified: string,
): Promise<string | null> {
  const locked = await lockIfLive(db, account.id)
  if (!locked) throw refusal('account_vanished')
  const isLive = await holdSession(db, account.id, credential.id)
  if (locked.password_hash !== verified) return isLive ? locked.password_hash : 'concurrent_change'
  if (!isLive) throw refusal('authentication_required')
  return null
}

import { z } from 'zod'
import { identifierOf, PasswordProvided, UsernameProvided } from '../accounts/formats.ts'
import { lockIfLive } from '../accounts/locks.ts'
import { callerEnvelope } from '../audit/audit.ts'
import { failureFloor } from '../auth/failure-floor.ts'
import { verificationsMax } from '../auth/password.ts'
import type { App } from '../core/app.ts'
import { accountKey, identifierKey, ipKey } from '../core/limiters.ts'
import { mutate } from '../core/mutate.ts'
import { sql } from '../db/db.ts'
import { refusal, ServiceError } from '../errors.ts'
import { type RouteContext, route } from '../http/route.ts'
import { auditEnded, endForeignSession, type StartedSession, startSession } from './sessions.ts'

const auth = { account: 'none', actor: 'none' } as const
type Context = RouteContext<typeof auth>
type Known = { id: string; password_hash: string }

/** `POST /login` (contract 2, section 8). */
export const login = route({
  doc: 'Sign in with username or e-mail and password; answers with a session cookie.',
  method: 'POST',
  path: '/login',
  auth,
  checksOrigin: true,
  input: z.strictObject({ username: UsernameProvided, password: PasswordProvided }),
  output: z.object({ ok: z.literal(true) }),
  errors: ['rate_limited', 'busy', 'invalid_credentials'],
  async handler({ username, password }, context) {
    const { app, carriers, ip } = context
    const identifier = identifierOf(username)
    let account: Known | undefined
    let floor: Promise<void> | undefined
    try {
      const session = await app.limiters.attempt(['invalid_credentials'], async (hold) => {
        await hold('login_ip', ipKey(ip))
        await hold('login_account', identifierKey(identifier.key))
        account = await findAccount(app, identifier)
        // Also for a name that nobody has: a shared store takes its time, which must tell nothing.
        await hold('login_account', account ? accountKey(account.id) : nobodyKey(identifier.key))
        floor = failureFloor(app.config)
        const outcome = await signIn(context, account, identifier.key, password)
        if (outcome === 'vanished') account = undefined
        if (typeof outcome === 'string') throw refusal('invalid_credentials')
        return outcome
      })
      await endForeignSession(app, session.account_id, carriers, ip)
      return { body: { ok: true as const }, cookie: session.cookie }
    } catch (error) {
      // Outside the attempt: the failure is charged at once and not only when the floor has passed.
      if (isRefused(error)) await fail(context, account, floor)
      throw error
    }
  },
})

/** No identifier begins with a space. */
const nobodyKey = (identifier: string): string => identifierKey(` ${identifier}`)

const isRefused = (error: unknown): boolean =>
  error instanceof ServiceError && error.data.reason === 'invalid_credentials'

/** Verifies and opens the session; whoever verified a password that was changed meanwhile starts over. */
async function signIn(
  context: Context,
  account: Known | undefined,
  identifier: string,
  password: string,
): Promise<StartedSession | 'wrong' | 'vanished'> {
  const { app } = context
  let verified = account?.password_hash
  for (let attempt = 0; attempt < verificationsMax; attempt++) {
    const isRight = await app.passwords.verify(verified, password)
    if (!isRight || !account || verified === undefined) return 'wrong'
    const rehashed = await rehash(app, verified, password)
    const outcome = await openSession(context, { id: account.id, identifier, verified, rehashed })
    if (outcome === null) return 'vanished'
    if (typeof outcome !== 'string') return outcome
    verified = outcome
  }
  return 'wrong'
}

/** A new hash where the stored one has old parameters; skipped rather than queued behind logins. */
const rehash = async (app: App, hash: string, password: string): Promise<string | null> =>
  app.passwords.isOutdated(hash) && app.passwords.hasRoom() ? await app.passwords.hash(password) : null

type Verified = { id: string; identifier: string; verified: string; rehashed: string | null }

/** The session; or the stored hash where it is no longer the one that was verified; or null: account gone. */
async function openSession(
  { app, carriers, ip }: Context,
  { id, identifier, verified, rehashed }: Verified,
): Promise<StartedSession | string | null> {
  const envelope = callerEnvelope({ account: { id } }, ip)
  return await mutate(app, 'login', { envelope }, async ({ db, audit, afterCommit }) => {
    const locked = await lockIfLive(db, id)
    if (!locked) return null
    if (locked.password_hash !== verified) return locked.password_hash
    if (rehashed) await db.run(sql`update account set password_hash = ${rehashed} where id = ${id}::uuid`)
    const session = await startSession(app, db, id, carriers)
    audit('login', { session_id: session.session_id })
    auditEnded(audit, session)
    afterCommit(() => app.limiters.clear('login_account', [identifierKey(identifier), accountKey(id)]))
    return session
  })
}

const findAccount = (app: App, { kind, key }: ReturnType<typeof identifierOf>): Promise<Known | undefined> =>
  app.db.readOnly.first<Known>(sql`
    select id, password_hash from account
    where ${kind === 'email' ? sql`email_key` : sql`username`} = ${key} and deleted_at is null`)

/** Audit row, then the failure floor: a refusal takes the same time whatever its cause. */
async function fail({ app, ip }: Context, account: Known | undefined, floor?: Promise<void>): Promise<void> {
  await app.audit.failure({
    event_type: 'login',
    outcome: 'failure',
    ...callerEnvelope({ account: account ?? null }, ip),
    metadata: { reason: 'invalid_credentials' },
  })
  await floor
}

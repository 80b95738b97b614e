import { z } from 'zod'
import { identifierOf, PasswordProvided, UsernameProvided } from '../accounts/formats.ts'
import { lockIfLive } from '../accounts/locks.ts'
import { failureFloor } from '../auth/failure-floor.ts'
import { verificationsMax } from '../auth/password.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { type RouteContext, route } from '../core/route.ts'
import { sql } from '../db/db.ts'
import { hasReason, refusal } from '../errors.ts'
import { accountKey, crowdOf, identifierKey, keyAt } from '../limits/limiters.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { seenToday } from './addresses.ts'
import { endForeignSession, type StartedSession } from './sessions.ts'

const auth = { account: 'none', actor: 'none' } as const
type Context = RouteContext<typeof auth>
type Known = { id: string; password_hash: string }
/** The limiter buckets of the attempt, and whether a success should remember or renew its address. */
type From = { buckets: string[]; isToRemember: boolean }
type Identifier = ReturnType<typeof identifierOf>

export const login = route({
  doc: 'Sign in with username or e-mail and password; sets a session cookie.',
  method: 'POST',
  path: '/login',
  auth,
  checksOrigin: true,
  rate_limit: { ip: 'login_ip', account: 'login_account' },
  input: z.strictObject({ username: UsernameProvided, password: PasswordProvided }),
  output: z.object({ ok: z.literal(true) }),
  errors: ['rate_limited', 'busy', 'invalid_credentials', 'second_factor_required'],
  async handler({ username, password }, context) {
    const { app, carriers, ip } = context
    const identifier = identifierOf(username)
    let account: Known | undefined
    let floor: Promise<void> | undefined
    try {
      const session = await context.attempt(['invalid_credentials'], async (hold) => {
        await hold.ip()
        const found = await findAccount(context, identifier)
        account = found.account
        const buckets = bucketsOf(identifier, account, found.seen_today === null ? null : ip)
        for (const bucket of buckets) await hold.account(bucket)
        floor = failureFloor(app.config, found.import_floor_ms)
        const from = { buckets, isToRemember: !found.seen_today }
        const outcome = await verifyPassword(context, account, from, password)
        if (outcome === 'vanished') account = undefined
        if (typeof outcome === 'string') throw refusal('invalid_credentials')
        return outcome
      })
      await endForeignSession(app, session.account_id, carriers, ip)
      return { body: { ok: true as const }, cookie: session.cookie }
    } catch (error) {
      // Wait outside the attempt, so that the failure is charged at once; a refusal takes as long whatever its cause.
      if (hasReason(error, 'invalid_credentials')) await fail(context, account)
      if (hasReason(error, 'invalid_credentials', 'second_factor_required')) await floor
      throw error
    }
  },
})

/**
 * A bucket of the name as typed, and one of the account, which its other names and `/password` share. A name that no
 * account has gets a second one too, so that refusals and their time do not tell which names exist. An address known
 * to the account has buckets of its own, of the same size.
 */
function bucketsOf({ key }: Identifier, account: Known | undefined, knownAddress: string | null): string[] {
  const all = [identifierKey(key), account ? accountKey(account.id) : identifierKey(`${nobody} ${key}`)]
  return knownAddress === null ? all : all.map((bucket) => keyAt(bucket, knownAddress))
}

/** Verifies the password and opens the session. Verifies again if the stored hash has changed meanwhile. */
async function verifyPassword(
  context: Context,
  account: Known | undefined,
  from: From,
  password: string,
): Promise<StartedSession | 'wrong' | 'vanished'> {
  const { app, ip } = context
  let verified = account?.password_hash
  for (let attempt = 0; attempt < verificationsMax; attempt++) {
    const isRight = await app.passwords.verify(verified, password, crowdOf(ip))
    if (!isRight || !account || verified === undefined) return 'wrong'
    const rehashed = await rehash(context, verified, password)
    const outcome = await openSession(context, { ...from, id: account.id, verified, rehashed })
    if (outcome === null) return 'vanished'
    if (typeof outcome !== 'string') return outcome
    verified = outcome
  }
  return 'wrong'
}

/** A new hash if the stored one has outdated parameters; null if not, or if the hashing queue is full. */
async function rehash({ app, ip }: Context, hash: string, password: string): Promise<string | null> {
  const { passwords } = app
  if (!passwords.isOutdated(hash) || !passwords.hasRoom()) return null
  return await passwords.hash(password, crowdOf(ip)).catch((error: unknown) => {
    if (hasReason(error, 'busy')) return null
    throw error
  })
}

type Verified = From & { id: string; verified: string; rehashed: string | null }

/** Returns the session; the stored hash if it is no longer the verified one; null if the account is gone. */
async function openSession(
  { app, carriers, ip }: Context,
  { id, buckets, isToRemember, verified, rehashed }: Verified,
): Promise<StartedSession | string | null> {
  const subject = callerSubject({ account: { id } }, ip)
  return await mutate(app, 'login', { subject }, async ({ db, audit, afterCommit }) => {
    const locked = await lockIfLive(db, id)
    if (!locked) return null
    if (locked.password_hash !== verified) return locked.password_hash
    if (rehashed)
      await db.run(
        sql`update account set password_hash = ${rehashed}, hash_foreign = false where id = ${id}::uuid`,
      )
    const session = await signIn(
      app,
      { db, audit },
      {
        account_id: id,
        proof: { methods: ['password'] },
        presented: carriers,
        ip: isToRemember ? ip : undefined,
      },
    )
    afterCommit(() => app.limiters.clear('login_account', buckets))
    return session
  })
}

/** Read in place of a hash for a name that no account has; as long as a real hash. */
const nobodysHash = '-'.repeat(97)
const nobody = '00000000-0000-0000-0000-000000000000'

/**
 * One statement that does the same work and returns as much for a name that no account has: a client that the
 * limiter refuses can still call as often as it likes and measure the time.
 */
async function findAccount({ app, ip }: Context, { kind, key }: Identifier) {
  const { id, password_hash, ...rest } = await app.db.readOnly.one<
    Known & { seen_today: boolean | null; import_floor_ms: number | null }
  >(sql`
    select coalesce(account.id, ${nobody}::uuid) as id, coalesce(account.password_hash, ${nobodysHash}) as password_hash,
      ${seenToday(sql`coalesce(account.id, ${nobody}::uuid)`, ip)} as seen_today,
      (select import_floor_ms from app_settings where id = 1) as import_floor_ms
    from (select) as one left join account
      on ${kind === 'email' ? sql`email_key` : sql`username`} = ${key} and deleted_at is null`)
  return { account: id === nobody ? undefined : { id, password_hash }, ...rest }
}

async function fail({ app, ip }: Context, account: Known | undefined): Promise<void> {
  await app.audit.failure({
    event_type: 'login',
    outcome: 'failure',
    ...callerSubject({ account: account ?? null }, ip),
    metadata: { reason: 'invalid_credentials' },
  })
}

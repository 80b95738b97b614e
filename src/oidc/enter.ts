import { fold } from '../accounts/formats.ts'
import { lockIfLive } from '../accounts/locks.ts'
import { secondFactorActive } from '../auth/ways-in.ts'
import { callerSubject, mutate, type Work } from '../core/mutate.ts'
import type { RouteHold } from '../core/route.ts'
import { type Queryable, sql } from '../db/db.ts'
import { busy, hasReason, refusal } from '../errors.ts'
import { isSignupOpen } from '../settings/settings.ts'
import { isPrivileged } from '../sign-in/privileged.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { isIn } from './identity.ts'
import { addLink, type Link, linkOf } from './link.ts'
import type { Context, Finished, Proven } from './proven.ts'
import { enterNew, raced } from './sign-up.ts'

/** Signs in whoever the provider has recognised: with the linked account, one with the same e-mail, or a new one. */
export async function enter(context: Context, hold: RouteHold, proven: Proven): Promise<Finished> {
  const { app } = context
  const { provider, flow } = proven
  try {
    return await settled(() => tryToEnter(context, proven, false))
  } catch (error) {
    const mayOpen = provider.on_unknown === 'signup' && flow.invite_id === null
    if (!hasReason(error, 'oidc_unknown_account') || !mayOpen || !(await isSignupOpen(app.db))) throw error
  }
  // Only strangers take a slot of open signup, so that its limiter never keeps out people who have an account.
  let isMade = false
  await hold.also('signup_open_ip', () => isMade)
  const entered = await settled(() => tryToEnter(context, proven, true))
  isMade = entered.created
  return entered
}

const triesMax = 5

/** Tries again whenever others came in between, a few times. */
async function settled<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; attempt < triesMax; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!hasReason(error, 'signup_conflict')) throw error
    }
  }
  throw busy()
}

function tryToEnter(context: Context, proven: Proven, wasOpen: boolean): Promise<Finished> {
  const subject = callerSubject({ account: null }, context.ip)
  return mutate(context.app, 'login', { subject }, async (work) => {
    const { email } = proven.identity
    const link = await linkOf(work.db, proven.identity)
    if (link) return await enterLinked(context, work, proven, link)
    const owner = email === null ? undefined : await ownerOf(work.db, email)
    try {
      if (owner?.deleted_at === null) return await enterOwned(context, work, proven, owner.id)
      return await enterNew(context, work, proven, { wasOpen, isEmailTaken: owner !== undefined })
    } catch (error) {
      const isRefused = hasReason(error, 'oidc_unknown_account', 'oidc_account_exists')
      throw isRefused && (await hasChanged(work.db, proven, owner)) ? raced() : error
    }
  })
}

type Owner = { id: string; deleted_at: string | null }

/** Whether a lock was held by someone who has linked the identity meanwhile, or given its e-mail another owner. */
async function hasChanged(db: Queryable, { identity }: Proven, before: Owner | undefined): Promise<boolean> {
  if (await linkOf(db, identity)) return true
  const owner = identity.email === null ? undefined : await ownerOf(db, identity.email)
  return owner?.id !== before?.id || owner?.deleted_at !== before?.deleted_at
}

async function enterLinked(context: Context, work: Work, proven: Proven, link: Link): Promise<Finished> {
  const { id, account_id } = link
  if (!(await lockIfLive(work.db, account_id))) throw refusal('oidc_unknown_account')
  const used = await work.db.run(sql`update account_link set last_used_at = now() where id = ${id}::uuid`)
  if (used === 0) throw raced()
  return { created: false, linked: false, session: await openSession(context, work, proven, account_id) }
}

const ownerOf = (db: Queryable, email: string): Promise<Owner | undefined> =>
  db.first(sql`select id, deleted_at from account where email_key = ${fold(email)}`)

/**
 * For an identity whose e-mail is that of a live account. The e-mail alone admits nobody, and links nobody to an account
 * whose second factor has not been proven: the link would stay even if the second step fails.
 */
async function enterOwned(
  context: Context,
  work: Work,
  proven: Proven,
  account_id: string,
): Promise<Finished> {
  const { provider, identity } = proven
  const email = identity.email as string
  if (!(await lockIfLive(work.db, account_id))) throw raced()
  const mayLink =
    provider.auto_link === 'both_verified' && isIn(provider.allowed_domains ?? [], email)
      ? await work.db.first(sql`
          select from account where id = ${account_id}::uuid and email_key = ${fold(email)} and email_verified
            and not ${isPrivileged(sql`account.id`)}
            and (${identity.strong}::boolean or not ${secondFactorActive(sql`account.id`)})`)
      : undefined
  const link = { account_id, provider: provider.id, identity, credential_type: null }
  if (!mayLink || !(await addLink(context.app, work, link))) throw refusal('oidc_account_exists')
  return { created: false, linked: true, session: await openSession(context, work, proven, account_id) }
}

function openSession(
  { app, carriers, ip }: Context,
  work: Work,
  { provider, identity }: Proven,
  account_id: string,
) {
  const audit: Work['audit'] = (type, metadata, own) => work.audit(type, metadata, { account_id, ...own })
  const proof = { methods: ['oidc' as const], strong: identity.strong }
  return signIn(
    app,
    { db: work.db, audit },
    { account_id, proof, provider: provider.id, presented: carriers, ip },
  )
}

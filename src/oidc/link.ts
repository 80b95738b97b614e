import { holdSession, lockIfLive } from '../accounts/locks.ts'
import { isStrongEnough } from '../auth/fresh.ts'
import type { App } from '../core/app.ts'
import { callerSubject, mutate, type Work } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { refusal } from '../errors.ts'
import { endFlows } from '../sign-in/flow.ts'
import type { Identity } from './identity.ts'
import type { Context, Finished, Proven } from './proven.ts'

/** Links the identity to the signed-in account. */
export async function linkIdentity(
  context: Context,
  { provider, identity, flow }: Proven,
): Promise<Finished> {
  const { app, ip } = context
  const account_id = flow.account_id as string
  const subject = { ...callerSubject({ account: { id: account_id } }, ip), target_account_id: account_id }
  return await mutate(app, 'factor_add', { subject }, async (work) => {
    await lockSession(work.db, flow)
    // The flow was taken before the provider was asked, so a second factor that came meanwhile has not ended it.
    const isEnough = await work.db.first(sql`
      select from auth_session s where s.id = ${flow.session_id} and ${isStrongEnough}`)
    if (!isEnough) throw refusal('flow_expired')
    const linked = await addLink(app, work, {
      account_id,
      provider: provider.id,
      identity,
      credential_type: 'session',
    })
    if (linked) return { created: false, linked }
    const holder = await linkOf(work.db, identity)
    if (holder?.account_id !== account_id) throw refusal('oidc_linked_elsewhere')
    return { created: false, linked: false }
  })
}

/** Locks the account of a flow and requires that the session which began it has not ended. */
export async function lockSession(
  db: Queryable,
  { account_id, session_id }: Pick<Proven['flow'], 'account_id' | 'session_id'>,
) {
  const isLive = await lockIfLive(db, account_id as string)
  if (!isLive || !(await holdSession(db, account_id as string, session_id))) throw refusal('flow_expired')
}

export type Link = { id: string; account_id: string }

export const linkOf = (db: Queryable, { issuer, subject }: Identity): Promise<Link | undefined> =>
  db.first<Link>(sql`
    select id, account_id from account_link where issuer = ${issuer} and subject = ${subject}`)

type NewLink = { account_id: string; provider: string; identity: Identity }

/**
 * Undefined if the identity already has an account, or the account an identity of this provider. The caller holds the
 * account lock.
 */
export const insertLink = (
  db: Queryable,
  { account_id, provider, identity: { issuer, subject } }: NewLink,
): Promise<{ id: string } | undefined> =>
  db.first<{ id: string }>(sql`
    insert into account_link (account_id, provider, issuer, subject, last_used_at)
    values (${account_id}::uuid, ${provider}, ${issuer}, ${subject}, now())
    on conflict do nothing returning id`)

/** Links an identity to an existing account and notifies its owner; false if it cannot be linked. */
export async function addLink(
  app: App,
  work: Work,
  { credential_type, ...link }: NewLink & { credential_type: string | null },
): Promise<boolean> {
  const { account_id, provider } = link
  const made = await insertLink(work.db, link)
  if (!made) return false
  await endFlows(work.db, account_id)
  work.audit(
    'factor_add',
    { factor: 'link', factor_id: made.id, provider, credential_type },
    { account_id, target_account_id: account_id },
  )
  await notify(app, work, account_id, 'link_added')
  return true
}

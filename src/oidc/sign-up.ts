import { insertAccount, isTaken } from '../accounts/accounts.ts'
import { isReserved } from '../accounts/usernames.ts'
import { noPassword } from '../auth/password.ts'
import type { Work } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { claimInvite } from '../invites/invites.ts'
import { startSession } from '../sessions/sessions.ts'
import { isSignupOpen } from '../settings/settings.ts'
import { usernameCandidates } from './identity.ts'
import { lockInvite } from './invited.ts'
import { insertLink } from './link.ts'
import type { Context, Finished, Proven } from './proven.ts'

/** Others have linked, unlinked or signed up between two reads, so the decision no longer holds. */
export const raced = () => refusal('signup_conflict')

type Admission = { wasOpen: boolean; isEmailTaken: boolean }

/** Makes an account without a password, if an invite or open signup admits the person. */
export async function enterNew(
  { app, carriers, ip }: Context,
  { db, audit }: Work,
  { provider, identity, flow }: Proven,
  { wasOpen, isEmailTaken }: Admission,
): Promise<Finished> {
  const { email, strong } = identity
  if (provider.on_unknown === 'refuse') throw refusal('oidc_unknown_account')
  const invite = await lockInvite(db, app.config, { ...flow, email })
  // Open only if both reads say so: the first read decided whether to hold the slot that counts open signups.
  const open_signup = !invite && wasOpen && (await isSignupOpen(db))
  if (!invite && !open_signup) throw refusal('oidc_unknown_account')
  if (isEmailTaken) throw refusal('oidc_account_exists')
  const username = await freeUsername(db, invite?.username ?? identity.username)
  const { account_id, actor_id } = await insertAccount(db, {
    username,
    email,
    email_verified: email !== null,
    password_hash: noPassword,
    actor_name: identity.name ?? username,
    created_by: invite?.created_by ?? null,
  }).catch((error: unknown) => {
    throw isTaken(error) ? raced() : error
  })
  if (!(await insertLink(db, { account_id, provider: provider.id, identity }))) throw raced()
  if (invite && !(await claimInvite(db, invite.id, account_id))) throw refusal('oidc_unknown_account')
  const session = await startSession(app, db, {
    account_id,
    proof: { methods: ['oidc'], strong },
    presented: carriers,
    ip,
  })
  const { session_id } = session
  audit(
    'signup',
    { session_id, open_signup, ...(invite && { invite_id: invite.id }), provider: provider.id },
    { account_id, actor_id },
  )
  return { created: true, linked: false, session }
}

async function freeUsername(db: Queryable, wanted: string): Promise<string> {
  // New accounts that want the same name take turns until their transactions end, so that each sees the names taken
  // before it.
  await db.run(sql`select pg_advisory_xact_lock(hashtextextended(${`cellkeep username ${wanted}`}, 0))`)
  const { username } = await db.one<{ username: string }>(sql`
    select username from unnest(${usernameCandidates(wanted)}::text[]) with ordinality as wanted (username, place)
    where not exists (select from account where account.username = wanted.username)
      and not ${isReserved(sql`wanted.username`)}
    order by place limit 1`)
  return username
}

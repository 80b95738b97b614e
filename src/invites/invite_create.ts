import { z } from 'zod'
import { Email, emailKey, Username } from '../accounts/formats.ts'
import { isReserved } from '../accounts/usernames.ts'
import type { Audit } from '../audit/audit.ts'
import { requireAhead } from '../core/ahead.ts'
import type { App } from '../core/app.ts'
import { mutation } from '../core/declare.ts'
import { recorded } from '../core/mutate.ts'
import type { Via } from '../core/operate.ts'
import { operation } from '../core/operation.ts'
import { type Queryable, sql } from '../db/db.ts'
import { canMail } from '../delivery/outbox.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Locale, OrNull, Timestamp } from '../wire/types.ts'
import { type Linked, makeInviteLink, refuseReveal } from './invite-link.ts'
import { Invite, inviteColumns } from './invites.ts'

const daysMax = 36_500

const InviteInput = z.strictObject({
  email: OrNull(Email),
  username: OrNull(Username),
  expires_at: OrNull(Timestamp),
  /** False: no message is sent, even if one could be. */
  send: z.boolean().optional(),
  /** True: the link is returned instead of mailed. */
  reveal: z.boolean().optional(),
  locale: Locale.optional(),
})

export const invite_create = mutation({
  doc: 'Invite a person by e-mail, username or both; a signup with exactly these is admitted. If messages can be sent, the link is mailed unless `send` is false; `reveal` returns it instead.',
  auth: { role: 'admin' },
  event: 'invite_create',
  secret_reply: true,
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: InviteInput,
  output: z.object({ ok: z.literal(true), invite: Invite, link: z.string().nullable() }),
  errors: ['invite_account_exists_username', 'invite_account_exists_email', 'invite_duplicate'],
  refine: toNewInvite,
  async handler({ linked, ...input }, { app, actor, credential, ...work }) {
    const invite = await insertInvite(work.db, work.audit, { ...input, created_by: actor.id })
    const detail = { credential_type: credential.type }
    const link = await makeInviteLink(app, work, invite, linked, { created_by: actor.id, detail })
    return { ok: true as const, invite, link }
  },
})

type NewInvite = Pick<Invite, 'email' | 'username' | 'expires_at'>

/** Refuses an invite without e-mail and username, and one that nobody could claim. */
function toNewInvite(
  { email = null, username = null, expires_at = null, ...wanted }: z.input<typeof InviteInput>,
  { app: { config } }: { app: App },
): NewInvite & { linked: Linked } {
  if (email === null && username === null)
    throw refusal('invalid_params', { issues: [issue([], 'invite_identifier_required')] })
  if (config.invite_claim === 'verified_email' && email === null)
    throw refusal('invalid_params', { issues: [issue(['email'], 'invalid_type')] })
  refuseReveal(config, wanted.reveal)
  if (config.invite_claim === 'verified_email' && (wanted.send ?? true) && !canMail({ config }, email))
    throw refusal('invalid_params', {
      issues: [issue(['email'], 'invalid_value', 'No mail can be sent to this address.')],
    })
  return { email, username, expires_at, linked: wanted }
}

/** Makes an invite and replaces expired, unclaimed ones with either identifier. */
async function insertInvite(
  db: Queryable,
  audit: Audit,
  { email, username, expires_at, created_by }: NewInvite & Pick<Invite, 'created_by'>,
  via: Via = {},
): Promise<Invite> {
  const email_key = emailKey(email)
  // Lock by ascending id, so that two calls that replace the same pair of invites do not deadlock.
  await db.run(sql`
    delete from invite where id in (
      select id from invite
      where claimed_at is null and (username = ${username} or email_key = ${email_key}) and expires_at <= now()
      order by id for update)`)
  const invite = await db.first<Invite>(sql`
    insert into invite as i (email, email_key, username, expires_at, created_by)
    values (${email}, ${email_key}, ${username}, ${expires_at}, ${created_by})
    on conflict do nothing
    returning ${inviteColumns}`)
  // Both judged after the insert, which waits for a signup that is claiming a conflicting invite: then the end may have
  // passed, and the account exists.
  await requireAhead(db, 'expires_at', expires_at, daysMax)
  const taken = await db.first<{ username: boolean; email: boolean }>(sql`
    select exists (select from account where username = ${username}) or ${isReserved(username)} as username,
      exists (select from account where email_key = ${email_key}) as email`)
  const refuse = (reason: 'invite_duplicate' | `invite_account_exists_${'username' | 'email'}`) =>
    recorded('invite_create', refusal(reason), { reason, ...via })
  if (taken?.username) throw refuse('invite_account_exists_username')
  if (taken?.email) throw refuse('invite_account_exists_email')
  if (!invite) throw refuse('invite_duplicate')
  audit('invite_create', { invite_id: invite.id, ...via })
  return invite
}

export const createInvite = operation({
  doc: 'Invite a person by e-mail, username or both; a signup with exactly these is admitted. With a mail server, the link is mailed.',
  input: InviteInput,
  event: 'invite_create',
  errors: ['invite_account_exists_username', 'invite_account_exists_email', 'invite_duplicate'],
  refine: toNewInvite,
  async handler({ linked, ...input }, { app, detail, by: created_by, ...work }) {
    const invite = await insertInvite(work.db, work.audit, { ...input, created_by }, { via: detail.via })
    return { ...invite, link: await makeInviteLink(app, work, invite, linked, { created_by, detail }) }
  },
  command: {
    name: 'invite create',
    args: {
      email: '--email ADDRESS',
      username: '--username NAME',
      expires_at: '--expires-at TIME',
      send: { usage: '[--no-send]', parse: (words) => (words['--no-send'] ? false : undefined) },
      reveal: '--reveal',
      locale: '--locale LOCALE',
    },
    details:
      'TIME looks like 2030-01-31T12:00:00Z. Without --expires-at the invite stays until it is claimed or deleted. A link\nworks for 14 days at most; `invite send` makes another.',
    phrase: ({ id, email, username, expires_at, link }) => [
      { invite: id, email, username, expires: expires_at },
      ...(link === null ? [] : ['', link]),
    ],
  },
})

import { z } from 'zod'
import { identifierOf, UsernameProvided } from '../accounts/formats.ts'
import { holdsAnyOf } from '../auth/active-grant.ts'
import { failureFloor } from '../auth/failure-floor.ts'
import { hasPassword } from '../auth/password.ts'
import { waysIn } from '../auth/ways-in.ts'
import type { App } from '../core/app.ts'
import { callerSubject, mutate } from '../core/mutate.ts'
import { type RouteContext, route } from '../core/route.ts'
import { type Sql, sql } from '../db/db.ts'
import { insertMessage } from '../delivery/outbox.ts'
import { identifierKey } from '../limits/limiters.ts'
import { auditTicket, insertTicket, newSecret, type Ticket, ticketColumns } from '../tickets/tickets.ts'
import { Locale } from '../wire/types.ts'
import { hasRecovery } from './reset-link.ts'

const auth = { account: 'none', actor: 'none' } as const
type Context = RouteContext<typeof auth>

/** `POST /recover`: mails a link, only to the address of the account. Every answer is the same, after the same time. */
export const recover = route({
  doc: 'Request a link to set a new password, sent to the e-mail of the account. The answer does not reveal whether the account exists.',
  method: 'POST',
  path: '/recover',
  auth,
  checksOrigin: true,
  rate_limit: { ip: 'recover_ip', account: 'recover_identifier' },
  enabled: ({ config }) => hasRecovery(config),
  input: z.strictObject({ identifier: UsernameProvided, locale: Locale.optional() }),
  output: z.object({ ok: z.literal(true) }),
  errors: ['rate_limited'],
  async handler({ identifier, locale }, context) {
    const { app, attempt } = context
    let floor: Promise<void> | undefined
    const always = () => true
    await attempt([], async (hold) => {
      await hold.ip(always)
      await hold.account(identifierKey(identifier), always)
      floor = failureFloor(app.config)
      await sendLink(context, identifier, locale)
    })
    await floor
    return { body: { ok: true as const } }
  },
})

/** The same two statements, whatever the identifier leads to: lock the account; make the ticket and queue the message. */
async function sendLink({ app, ip }: Context, identifier: string, locale?: string): Promise<void> {
  const { kind, key } = identifierOf(identifier)
  const purpose = 'password_reset'
  const { link, ...secret } = newSecret(app, purpose)
  const message = { purpose, ticket_id: secret.id, link, locale, values: sql`ticket` } as const
  const made = insertTicket({
    ...secret,
    purpose,
    delivery: 'mailed',
    created_by: null,
    seconds: app.config.reset_seconds,
    owner: sql`owner`,
  })
  const locked = sql`
    from account where ${kind === 'email' ? sql`email_key` : sql`username`} = ${key} and deleted_at is null
    for no key update`
  await mutate(app, 'ticket_create', { subject: callerSubject({ account: null }, ip) }, async (work) => {
    // A statement of its own first: what the holder of the lock commits, such as a grant of keeper, is visible only to
    // a later statement.
    await work.db.run(sql`select ${locked}`)
    const ticket = await work.db.first<Ticket>(sql`
      with found as (select * ${locked}), owner as (
        select id as account_id, null::uuid as invite_id, email, email_key, null::timestamptz as until
        from found account where ${mayRecover(app)}
      ), ${made}, message as (${insertMessage(app, message)})
      select ${ticketColumns} from ticket`)
    if (!ticket) return
    auditTicket(work, ticket, { credential_type: null })
    work.afterCommit(() => app.outbox.wake())
  })
}

const holds = (role: string): Sql => holdsAnyOf(sql`account.id`, [role], { byAnyActor: true })

/**
 * Whether `account` may recover by mail. Whoever reads the mailbox gets the account, so a keeper never may, and an
 * admin only by a verified address. An account that has no password may not while it can sign in by passkey or
 * provider.
 */
const mayRecover = (app: App): Sql => sql`email is not null and not ${holds('keeper')}
  and (email_verified or not ${holds('admin')})
  and (${hasPassword} or cardinality(${waysIn(app)}) = 0)`

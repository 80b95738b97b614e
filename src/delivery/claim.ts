import type { App } from '../core/app.ts'
import { type Sql, sql } from '../db/db.ts'
import type { Message, Notice, TicketPurpose } from '../registry/messages.ts'
import { isOpen } from '../tickets/tickets.ts'
import { linkPlace, type MessagePurpose } from './outbox.ts'

/** A message that this node delivers: no other node takes it before its lease ends. */
export type Claimed = {
  id: string
  purpose: MessagePurpose
  notice: Notice | null
  ticket_id: string | null
  to_address: string
  link_sealed: string | null
  locale: string
  attempts: number
  created_at: string
  expires_at: string
  /** It has expired, or its ticket is no longer open. */
  is_over: boolean
  /** The username of its account; null for an invite. */
  username: string | null
}

/** Longer than a delivery can take. */
const lease = sql`interval '60 seconds'`

/** A lease that ends in more than an hour is from before the clock of the database was set back. */
const isLeased = sql`coalesce(leased_until between now() and now() + interval '1 hour', false)`

/** Times are stored in milliseconds, so that what has just been queued may be due in the next one. */
const soon = sql`now() + interval '1 millisecond'`

/** Claims at most `max` messages that are due, in a statement of its own. */
export const claimDue = ({ db }: Pick<App, 'db'>, max: number): Promise<Claimed[]> =>
  db.rows<Claimed>(
    claiming(sql`
      select id from message_outbox
      where state = 'queued' and next_attempt_at <= ${soon} and not ${isLeased}
      order by next_attempt_at limit ${max} for update skip locked`),
  )

/** Queues a message and claims it before any worker does. */
export const claimOne = ({ db }: Pick<App, 'db'>, insert: Sql): Promise<Claimed> =>
  db.transaction(async (tx) => {
    const { id } = await tx.one<{ id: string }>(sql`${insert} returning id`)
    return await tx.one<Claimed>(claiming(sql`select ${id}::uuid as id`))
  })

const claiming = (due: Sql): Sql => sql`
    with due as (${due}), claimed as (
      update message_outbox m set leased_until = now() + ${lease}, attempts = m.attempts + 1
      from due where m.id = due.id returning m.*
    )
    select m.id, m.purpose, m.notice, m.ticket_id, m.to_address, m.link_sealed, m.locale, m.attempts, m.created_at,
      m.expires_at, account.username, m.expires_at <= now() or (m.ticket_id is not null and not exists (
        select from account_ticket t where t.id = m.ticket_id and ${isOpen})) as is_over
    from claimed m left join account on account.id = m.account_id
    order by m.created_at, m.id`

/** Every error that a message is listed with; the text of a server is never kept. */
export const messageErrors = [
  'timeout',
  'unreachable',
  'refused',
  'undeliverable',
  'limited',
  'expired',
  'hook_failed',
  'unsealable',
] as const
export type MessageError = (typeof messageErrors)[number]

export type Outcome = { state: 'sent' | 'failed' | 'suppressed' | 'queued'; error: MessageError | null }

/** Seconds after which a failed delivery is tried again; after these, every hour. */
const pauses = [10, 60, 300, 900]

export const pauseAfter = (attempts: number): number => pauses[attempts - 1] ?? 3600

/**
 * Records the outcome of a try, unless the lease ended and another node has the message. A message that will not be
 * tried again keeps neither address nor link.
 */
export async function record(
  { db }: Pick<App, 'db'>,
  { id, attempts, expires_at }: Pick<Claimed, 'id' | 'attempts' | 'expires_at'>,
  { state, error }: Outcome,
): Promise<Outcome> {
  const pause = pauseAfter(attempts)
  const isLast = db.clock.now() + pause * 1000 >= Date.parse(expires_at)
  const own = sql`where id = ${id}::uuid and state = 'queued' and attempts = ${attempts}`
  if (state === 'queued' && !isLast) {
    await db.run(sql`
      update message_outbox set leased_until = null, error = ${error},
        next_attempt_at = now() + ${pause}::int * interval '1 second' ${own}`)
    return { state, error }
  }
  const final = state === 'queued' ? 'failed' : state
  await db.run(sql`
    update message_outbox set state = ${final}, error = ${error}, finished_at = now(), next_attempt_at = null,
      leased_until = null, to_address = null, link_sealed = null ${own}`)
  return { state: final, error }
}

/** The message as a transport gets it; undefined if no key opens its link. */
export function messageOf({ sealing }: Pick<App, 'sealing'>, row: Claimed): Message | undefined {
  const { id, to_address: to, locale, purpose, expires_at } = row
  const username = row.username ?? ''
  if (purpose === 'test') return { id, to, locale, purpose }
  if (purpose === 'notice')
    return { id, to, locale, purpose, notice: row.notice as Notice, username, at: row.created_at }
  const link = sealing?.open(row.link_sealed ?? '', linkPlace(id, row.ticket_id as string))
  if (link === undefined) return undefined
  if (purpose === 'invite') return { id, to, locale, purpose, link, expires_at }
  return { id, to, locale, purpose: purpose satisfies TicketPurpose, username, link, expires_at }
}

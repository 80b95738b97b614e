import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { randomToken, sha256Hex } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import type { Detail } from '../core/operate.ts'
import { type Sql, sql } from '../db/db.ts'
import { queueLink } from '../delivery/outbox.ts'
import { type TicketPurpose, ticketPurposes } from '../registry/messages.ts'
import { Uuid } from '../wire/types.ts'

/** One-time links: the service stores a ticket, and the link holds its token. */

/** Wire form of a ticket. It shows neither token nor address. */
export const Ticket = z.object({
  id: Uuid,
  purpose: z.enum(ticketPurposes),
  account_id: Uuid.nullable(),
  invite_id: Uuid.nullable(),
  /** Revealed to the admin or operator who asked for it, or mailed, which proves the mailbox. */
  delivery: z.enum(['mailed', 'revealed']),
  created_at: z.string(),
  created_by: Uuid.nullable(),
  expires_at: z.string(),
  used_at: z.string().nullable(),
  voided_at: z.string().nullable(),
})
export type Ticket = z.output<typeof Ticket>

export const ticketColumns = sql`id, purpose, account_id, invite_id, delivery, created_at, created_by, expires_at,
  used_at, voided_at`

/** Of `account_ticket t`, by the clock of the statement: a ticket may expire while its transaction waits for a lock. */
export const isOpen = sql`t.used_at is null and t.voided_at is null and t.expires_at > statement_timestamp()`

/**
 * Max open tickets of one owner and purpose. People may press the link of the older of two mails, so one is too few.
 */
const openMax = 3

const day = 86_400

type Owner = { account_id: string; invite_id?: undefined } | { invite_id: string; account_id?: undefined }

export type NewTicket = Owner & {
  purpose: TicketPurpose
  delivery: Ticket['delivery']
  /** The address that the ticket proves, and to which it is mailed. */
  email: string | null
  email_key: string | null
  /** The actor who asked for it. */
  created_by: string | null
  /** Default: one day. */
  seconds?: number
  /** The ticket expires at this time at the latest, for example together with its invite. */
  until?: string | null
  /** The locale of its message. */
  locale?: string | undefined
  detail: Detail
}

/** The secret parts of a new ticket. */
export function newSecret({ config }: Pick<App, 'config'>, purpose: TicketPurpose) {
  const token = `secret_svc_ticket_${randomToken()}`
  const page = config.link_url?.replace('{purpose}', purpose) ?? ''
  return { id: randomUUID(), token_hash: sha256Hex(token), link: `${page}#ticket=${token}` }
}

/**
 * Makes a ticket, audits it and, if it is to be mailed, queues its message. The caller holds the lock of the account
 * or the invite, and shows a revealed link once.
 */
export async function makeTicket(
  app: App,
  work: Pick<Work, 'db' | 'audit' | 'afterCommit'>,
  wanted: NewTicket,
): Promise<{ ticket: Ticket; link: string }> {
  const { purpose, account_id = null, invite_id = null, delivery, detail } = wanted
  const { link, ...secret } = newSecret(app, purpose)
  const owner = sql`(select ${account_id}::uuid as account_id, ${invite_id}::uuid as invite_id,
    ${wanted.email} as email, ${wanted.email_key} as email_key, ${wanted.until ?? null}::timestamptz as until)`
  const ticket = await work.db.one<Ticket>(sql`
    with ${insertTicket({ ...wanted, ...secret, owner })} select ${ticketColumns} from ticket`)
  if (delivery === 'mailed') {
    await queueLink(app, work, {
      purpose,
      account_id,
      invite_id,
      ticket_id: ticket.id,
      to: wanted.email as string,
      link,
      expires_at: ticket.expires_at,
      locale: wanted.locale,
    })
  }
  auditTicket(work, ticket, detail)
  return { ticket, link }
}

export const auditTicket = (
  { audit }: Pick<Work, 'audit'>,
  { id, purpose, delivery, expires_at, account_id, invite_id }: Ticket,
  detail: Detail,
): void =>
  audit(
    'ticket_create',
    { ticket_id: id, purpose, delivery, expires_at, ...(invite_id && { invite_id }), ...detail },
    account_id ? { target_account_id: account_id } : {},
  )

type Insert = Pick<NewTicket, 'purpose' | 'delivery' | 'created_by' | 'seconds'> & {
  id: string
  token_hash: string
  /** One row or none: account_id, invite_id, email, email_key, until. */
  owner: Sql
}

/**
 * Queries of a `with` that make the ticket and void the oldest ones beyond the max. A mailed ticket voids only mailed
 * ones: anybody may ask for it, and could otherwise end a link that an operator has passed on.
 */
export const insertTicket = ({ id, token_hash, owner, seconds = day, ...given }: Insert): Sql => sql`
  surplus as (
    update account_ticket set voided_at = now() where id in (
      select t.id from ${owner} o join account_ticket t
        on t.account_id = o.account_id or t.invite_id = o.invite_id
      where t.purpose = ${given.purpose} and ${isOpen}
        and (t.delivery = 'mailed' or ${given.delivery} = 'revealed')
      order by t.created_at desc, t.id desc offset ${sql.raw(openMax - 1)}
    )
  ), ticket as (
    insert into account_ticket
      (id, purpose, token_hash, account_id, invite_id, email, email_key, delivery, created_by, expires_at)
    select ${id}, ${given.purpose}, ${token_hash}, account_id, invite_id, email, email_key, ${given.delivery},
      ${given.created_by}, least(now() + ${seconds}::int * interval '1 second', until)
    from ${owner} o
    returning *
  )`

/**
 * Ends the links to set a password for an actor's account when the actor becomes admin or keeper, except those that an
 * operator was shown: an admin could no longer make one, and the mailbox may no longer get one. The caller holds the
 * account lock.
 */
export const voidHeldLinks = (actor_id: string): Sql => sql`
  update account_ticket t set voided_at = now()
  where t.account_id = (select account_id from actor where id = ${actor_id}::uuid)
    and t.purpose = 'password_reset' and (t.created_by is not null or t.delivery = 'mailed') and ${isOpen}`

/** Ends the open tickets of an account, all or those of some purposes. The caller holds its lock. */
export const voidTickets = (
  account_id: string,
  purposes: readonly TicketPurpose[] = ticketPurposes,
): Sql => sql`
  update account_ticket t set voided_at = now()
  where t.account_id = ${account_id}::uuid and t.purpose = any(${[...purposes]}::text[]) and ${isOpen}`

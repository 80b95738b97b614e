import { randomUUID } from 'node:crypto'
import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import type { Notice, TicketPurpose } from '../registry/messages.ts'
import { isDeliverable } from '../wire/address.ts'

/**
 * Messages wait in the outbox, written in the transaction that they report. No request waits for their delivery, and no
 * answer depends on it.
 */

/** Whether a message to this address would be sent. */
export const canMail = ({ config }: Pick<App, 'config'>, email: string | null): email is string =>
  config.mail !== 'off' && email !== null && isDeliverable(email)

export type MessagePurpose = TicketPurpose | 'notice' | 'test'

type Queued = {
  purpose: MessagePurpose
  notice?: Notice
  account_id: string | null
  invite_id: string | null
  locale?: string | undefined
}

/** A message with a link, which is sealed. It is tried until the link expires. */
type QueuedLink = Queued & {
  purpose: TicketPurpose
  ticket_id: string
  to: string
  link: string
  expires_at: string
}

/** How long a message without a link is tried. */
export const triedFor = sql`interval '24 hours'`

/** Queues a message with a link. */
export async function queueLink(
  app: App,
  { db, afterCommit }: Pick<Work, 'db' | 'afterCommit'>,
  { to, expires_at, ...message }: QueuedLink,
): Promise<void> {
  const values = sql`(select ${message.account_id}::uuid as account_id, ${message.invite_id}::uuid as invite_id,
    ${to} as email, ${expires_at}::timestamptz as expires_at) one`
  await db.run(insertMessage(app, { ...message, values }))
  afterCommit(() => app.outbox.wake())
}

/** Inserts a message for each row of `values`: account_id, invite_id, email, expires_at. */
export function insertMessage(
  app: Pick<App, 'config' | 'sealing'>,
  {
    purpose,
    notice,
    locale = app.config.mail_locale,
    link,
    ticket_id,
    values,
  }: Omit<Queued, 'account_id' | 'invite_id'> & { link?: string; ticket_id?: string; values: Sql },
): Sql {
  const id = randomUUID()
  return sql`
    insert into message_outbox
      (id, purpose, notice, account_id, invite_id, ticket_id, to_address, link_sealed, locale, expires_at)
    select ${id}::uuid, ${purpose}, ${notice ?? null}, account_id, invite_id, ${ticket_id ?? null}::uuid, email,
      ${link === undefined ? null : sealLink(app, link, id, ticket_id as string)}, ${locale}, expires_at
    from ${values}`
}

/** The place of a sealed link: its row, and its ticket. */
export const linkPlace = (row: string, ticket_id: string) => ({
  table: 'message_outbox',
  row,
  owner: ticket_id,
})

function sealLink({ sealing }: Pick<App, 'sealing'>, link: string, id: string, ticket_id: string): string {
  if (!sealing) throw refusal('service_unavailable')
  return sealing.seal(link, linkPlace(id, ticket_id))
}

import { sql } from '../../src/db/db.ts'
import { linkPlace } from '../../src/delivery/outbox.ts'
import type { TestService } from '../../src/testing/index.ts'

/** Delivery always fails, so that messages stay in the outbox with their links. */
export const mailIsDown = {
  deliver: (): never => {
    throw new Error('the mail server is down')
  },
} as const

type Waiting = Record<'id' | 'ticket_id' | 'purpose' | 'to_address', string> &
  Record<'notice' | 'link_sealed', string | null>

/** Undelivered messages to an account, oldest first; of those with the same time, the one with a link comes first. */
export async function messagesTo({ service: { app } }: TestService, { id }: { id: string }) {
  const rows = await app.db.rows<Waiting>(sql`
    select id, ticket_id, purpose, notice, to_address, link_sealed from message_outbox
    where account_id = ${id}::uuid order by created_at, notice nulls first`)
  return rows.map(({ link_sealed, ticket_id, id: row, purpose, notice, to_address: to }) => {
    const link = link_sealed === null ? undefined : app.sealing?.open(link_sealed, linkPlace(row, ticket_id))
    return { what: notice ?? purpose, to, token: link?.split('#ticket=')[1] }
  })
}

/** The token of the newest link that was mailed to an account. */
export async function tokenMailedTo(test: TestService, account: { id: string }): Promise<string> {
  const token = (await messagesTo(test, account)).findLast((one) => one.token !== undefined)?.token
  if (token === undefined) throw new Error('no link was mailed')
  return token
}

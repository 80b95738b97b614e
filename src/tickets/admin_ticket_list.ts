import { z } from 'zod'
import type { App } from '../core/app.ts'
import { query } from '../core/declare.ts'
import { account, operation } from '../core/operation.ts'
import { closePage, keyset, openPage, type Page, pageInput } from '../core/page.ts'
import { type Queryable, sql } from '../db/db.ts'
import { type TicketPurpose, ticketPurposes } from '../registry/messages.ts'
import { Uuid } from '../wire/types.ts'
import { isOpen, Ticket, ticketColumns } from './tickets.ts'

const Filters = z.strictObject({
  account_id: Uuid.optional(),
  purpose: z.enum(ticketPurposes).optional(),
  open_only: z.boolean().default(false),
  ...pageInput(),
})
type Wanted = { account_id: string | null; purpose: TicketPurpose | null; open_only: boolean; page: Page }

export const admin_ticket_list = query({
  doc: 'One-time links, newest first, without their tokens and addresses. A link is removed 30 days after it ended.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: Filters,
  output: z.object({ tickets: z.array(Ticket), next_cursor: z.string().nullable() }),
  refine: (input, { app, actor }) => wantedOf(app, actor.id, input),
  handler: (wanted, { app, db }) => readTickets(app, db, wanted),
})

export const listTickets = operation({
  doc: 'List one-time links, newest first.',
  input: Filters,
  handler: (input, { app }) => readTickets(app, app.db, wantedOf(app, null, input)),
  command: {
    name: 'ticket list',
    args: {
      account_id: { ...account, usage: ['[REF]'] },
      purpose: '--purpose PURPOSE',
      open_only: '--open',
    },
    table: {
      columns: {
        TICKET: 'id',
        PURPOSE: 'purpose',
        FOR: ({ account_id, invite_id }) => account_id ?? `invite ${invite_id}`,
        DELIVERY: 'delivery',
        EXPIRES: 'expires_at',
        STATE: ({ used_at, voided_at, expires_at }, now) =>
          used_at
            ? `used ${used_at}`
            : voided_at
              ? `voided ${voided_at}`
              : Date.parse(expires_at) > now
                ? 'open'
                : 'expired',
      },
      none: 'There is no link.',
    },
  },
})

function wantedOf(app: App, actor: string | null, input: z.output<typeof Filters>): Wanted {
  const { account_id = null, purpose = null, open_only } = input
  const filters = { account_id, purpose, open_only }
  return { ...filters, page: openPage(app, 'admin_ticket_list', { actor, ...filters }, input) }
}

async function readTickets(
  app: App,
  db: Pick<Queryable, 'rows'>,
  { account_id, purpose, open_only, page }: Wanted,
): Promise<{ tickets: Ticket[]; next_cursor: string | null }> {
  const { beyond, inOrder, limited } = keyset(page, { created_at: 'timestamptz', id: 'uuid' }, 'desc')
  // Literal, so that every plan knows whether the purpose is a rare one.
  const ofPurpose = purpose === null ? sql.empty : sql.raw(`and purpose = '${purpose}'`)
  const found = await db.rows<Ticket>(sql`
    select ${ticketColumns} from account_ticket t where ${beyond} ${ofPurpose}
      ${account_id === null ? sql.empty : sql`and account_id = ${account_id}::uuid`}
      ${open_only ? sql`and ${isOpen}` : sql.empty} ${inOrder} ${limited}`)
  const { rows, next_cursor } = closePage(app, page, found, ({ created_at, id }) => [created_at, id])
  return { tickets: rows, next_cursor }
}

import { z } from 'zod'
import type { App } from '../core/app.ts'
import { query } from '../core/declare.ts'
import { operation } from '../core/operation.ts'
import { closePage, keyset, openPage, type Page, pageInput } from '../core/page.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { messageErrors } from './claim.ts'

const State = z.enum(['queued', 'sent', 'failed', 'suppressed'])

/** Wire form of a message in the outbox. It shows neither address nor link. */
const MessageEntry = z.object({
  id: Uuid,
  purpose: z.string(),
  notice: z.string().nullable(),
  account_id: Uuid.nullable(),
  invite_id: Uuid.nullable(),
  state: State,
  attempts: z.int(),
  created_at: z.string(),
  next_attempt_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  error: z.enum(messageErrors).nullable(),
})
type MessageEntry = z.output<typeof MessageEntry>

const Filters = z.strictObject({ state: State.optional(), ...pageInput() })
type Wanted = { state: z.output<typeof State> | null; page: Page }

export const admin_message_list = query({
  doc: 'Messages to people with their state, newest first, without address and link. A message is removed 7 days after it was delivered or given up.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: Filters,
  output: z.object({ messages: z.array(MessageEntry), next_cursor: z.string().nullable() }),
  refine: (input, { app, actor }) => wantedOf(app, actor.id, input),
  handler: (wanted, { app, db }) => readMessages(app, db, wanted),
})

export const listMessages = operation({
  doc: 'List messages to people with their state, newest first.',
  input: Filters,
  handler: (input, { app }) => readMessages(app, app.db, wantedOf(app, null, input)),
  command: {
    name: 'mail list',
    args: { state: '--state STATE' },
    table: {
      columns: {
        MESSAGE: 'id',
        WHAT: ({ purpose, notice }) => notice ?? purpose,
        FOR: ({ account_id, invite_id }) => account_id ?? (invite_id && `invite ${invite_id}`),
        CREATED: 'created_at',
        STATE: 'state',
        TRIES: 'attempts',
        ERROR: 'error',
        NEXT: 'next_attempt_at',
      },
      none: 'There is no message.',
    },
  },
})

function wantedOf(app: App, actor: string | null, input: z.output<typeof Filters>): Wanted {
  const { state = null } = input
  return { state, page: openPage(app, 'admin_message_list', { actor, state }, input) }
}

async function readMessages(
  app: App,
  db: Pick<Queryable, 'rows'>,
  { state, page }: Wanted,
): Promise<{ messages: MessageEntry[]; next_cursor: string | null }> {
  const { beyond, inOrder, limited } = keyset(page, { created_at: 'timestamptz', id: 'uuid' }, 'desc')
  // Literal, so that every plan knows whether the state is a rare one.
  const inState = state === null ? sql.empty : sql.raw(`and state = '${state}'`)
  const found = await db.rows<MessageEntry>(sql`
    select id, purpose, notice, account_id, invite_id, state, attempts, created_at, next_attempt_at, finished_at,
      error
    from message_outbox where ${beyond} ${inState} ${inOrder} ${limited}`)
  const { rows, next_cursor } = closePage(app, page, found, ({ created_at, id }) => [created_at, id])
  return { messages: rows, next_cursor }
}

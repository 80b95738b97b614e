import { z } from 'zod'
import type { App } from '../core/app.ts'
import { query } from '../core/declare.ts'
import { account, operation } from '../core/operation.ts'
import { closePage, keyset, openPage, type Page, pageInput } from '../core/page.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { AuthSession, sessionColumns } from './sessions.ts'

const AdminSession = AuthSession.extend({ username: z.string() })
type AdminSession = z.output<typeof AdminSession>

export const admin_session_list = query({
  doc: 'The unexpired sessions of one account or of all, newest first.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject({ account_id: Uuid.nullish(), ...pageInput() }),
  output: z.object({ sessions: z.array(AdminSession), next_cursor: z.string().nullable() }),
  refine(input, { app, actor }) {
    const account_id = input.account_id ?? null
    return { account_id, page: openPage(app, 'admin_session_list', { actor: actor.id, account_id }, input) }
  },
  handler: (input, { app, db }) => readSessions(app, db, input),
})

export const listSessions = operation({
  doc: 'List the unexpired sessions of one account or of all, newest first.',
  input: z.strictObject({ account_id: Uuid.nullish(), ...pageInput() }),
  handler({ account_id = null, ...wanted }, { app }) {
    const page = openPage(app, 'admin_session_list', { actor: null, account_id }, wanted)
    return readSessions(app, app.db, { account_id, page })
  },
  command: {
    name: 'session list',
    args: { account_id: account },
    table: {
      columns: { SESSION: 'id', USERNAME: 'username', CREATED: 'created_at', EXPIRES: 'expires_at' },
      none: 'Nobody is signed in.',
    },
  },
})

/** One page of unexpired sessions, newest first. */
async function readSessions(
  app: App,
  db: Pick<Queryable, 'rows'>,
  { account_id, page }: { account_id: string | null; page: Page },
): Promise<{ sessions: AdminSession[]; next_cursor: string | null }> {
  const order = { 's.created_at': 'timestamptz', 's.id': 'text' } as const
  const { beyond, inOrder, limited } = keyset(page, order, 'desc')
  const found = await db.rows<AdminSession>(sql`
    select ${sessionColumns}, account.username
    from auth_session s join account on account.id = s.account_id
    where s.expires_at > now() and ${beyond}
      ${account_id === null ? sql.empty : sql`and s.account_id = ${account_id}::uuid`}
    ${inOrder} ${limited}`)
  const { rows, next_cursor } = closePage(app, page, found, (row) => [row.created_at, row.id])
  return { sessions: rows, next_cursor }
}

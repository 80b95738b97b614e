import { z } from 'zod'
import type { App } from '../core/app.ts'
import { query } from '../core/declare.ts'
import { account, operation } from '../core/operation.ts'
import { closePage, keyset, openPage, type Page, pageInput } from '../core/page.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { TokenEntry, toEntry, tokenColumns } from './tokens.ts'

const AdminToken = TokenEntry.extend({ username: z.string() })
export type AdminToken = z.output<typeof AdminToken>

export const admin_token_list = query({
  doc: 'The API tokens of one account, or of all, newest first, with expired ones until the cleanup removes them.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject({ account_id: Uuid.nullish(), ...pageInput() }),
  output: z.object({ tokens: z.array(AdminToken), next_cursor: z.string().nullable() }),
  refine(input, { app, actor }) {
    const account_id = input.account_id ?? null
    return { account_id, page: openPage(app, 'admin_token_list', { actor: actor.id, account_id }, input) }
  },
  handler: (input, { app, db }) => readTokens(app, db, input),
})

export const listTokens = operation({
  doc: 'List the API tokens of one account or of all, newest first. Their secrets are not stored.',
  input: z.strictObject({ account_id: Uuid.nullish(), ...pageInput() }),
  handler({ account_id = null, ...wanted }, { app }) {
    const page = openPage(app, 'admin_token_list', { actor: null, account_id }, wanted)
    return readTokens(app, app.db, { account_id, page })
  },
  command: {
    name: 'token list',
    args: { account_id: account },
    table: {
      columns: {
        TOKEN: 'id',
        USERNAME: 'username',
        NAME: 'name',
        SCOPE: 'scope',
        EXPIRES: ({ expires_at }) => expires_at ?? 'never',
        'LAST USED': 'last_used_at',
        FROM: 'last_used_ip',
      },
      none: 'There are no tokens.',
    },
  },
})

/** One page of tokens, newest first. */
async function readTokens(
  app: App,
  db: Pick<Queryable, 'rows'>,
  { account_id, page }: { account_id: string | null; page: Page },
): Promise<{ tokens: AdminToken[]; next_cursor: string | null }> {
  const { beyond, inOrder, limited } = keyset(page, { created_at: 'timestamptz', id: 'text' }, 'desc')
  const found = await db.rows<AdminToken>(sql`
    select picked.*, account.username
    from (
      select ${tokenColumns} from api_token
      where ${account_id === null ? sql`true` : sql`account_id = ${account_id}::uuid`} and ${beyond}
      ${inOrder} ${limited}
    ) picked join account on account.id = picked.account_id
    order by picked.created_at desc, picked.id desc`)
  const { rows, next_cursor } = closePage(app, page, found, (row) => [row.created_at, row.id])
  return { tokens: rows.map((row) => ({ ...toEntry(row), username: row.username })), next_cursor }
}

import { z } from 'zod'
import { query } from '../core/action.ts'
import { account, operation } from '../core/operation.ts'
import { closePage, keyset, openPage, pageInput } from '../core/page.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { TokenEntry, toEntry, tokenColumns } from './tokens.ts'

const tokensMax = 200

export const account_token_list = query({
  doc: 'The API tokens of the caller’s account, newest first, with expired ones until the cleanup removes them.',
  auth: { account: 'required', actor: 'none' },
  output: z.object({ tokens: z.array(TokenEntry) }),
  async handler(_input, { account, db }) {
    const rows = await db.rows<TokenEntry>(sql`
      select ${tokenColumns} from api_token where account_id = ${account.id}::uuid
      order by created_at desc, id desc limit ${sql.raw(tokensMax)}`)
    return { tokens: rows.map(toEntry) }
  },
})

export type AdminToken = TokenEntry & { username: string }

/** Includes expired tokens until the cleanup removes them. */
export const listTokens = operation({
  doc: 'List the API tokens of an account, or of all, newest first. Their secrets are not stored.',
  input: z.strictObject({ account_id: Uuid.nullish(), ...pageInput() }),
  async handler({ account_id = null, ...wanted }, { app }) {
    const page = openPage(app, 'token_list', { actor: null, account_id }, wanted)
    const order = { created_at: 'timestamptz', id: 'text' } as const
    const { beyond, inOrder, limited } = keyset(page, order, 'desc')
    const found = await app.db.rows<AdminToken>(sql`
      select picked.*, account.username
      from (
        select ${tokenColumns} from api_token
        where ${account_id === null ? sql`true` : sql`account_id = ${account_id}::uuid`} and ${beyond}
        ${inOrder} ${limited}
      ) picked join account on account.id = picked.account_id
      order by picked.created_at desc, picked.id desc`)
    const { rows, next_cursor } = closePage(app, page, found, (row) => [row.created_at, row.id])
    const tokens: AdminToken[] = rows.map((row) => ({ ...toEntry(row), username: row.username }))
    return { tokens, next_cursor }
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

import { z } from 'zod'
import { type EndedForEveryone, endForEveryone } from '../accounts/everyone.ts'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { type Operator, operate } from '../core/operate.ts'
import { closePage, keyset, openPage, pageInput } from '../core/page.ts'
import { Uuid } from '../core/wire.ts'
import { sql } from '../db/db.ts'
import { endTokens } from './admin_token_revoke_all.ts'
import { ApiTokenId, type TokenEntry, toEntry, tokenColumns } from './tokens.ts'

/** API tokens by operator commands and library calls (contract 2, section 19). */

export type AdminToken = TokenEntry & { username: string }

const PageInput = z.strictObject({ account_id: Uuid.nullish(), ...pageInput() })

/** One page of tokens, newest first, of one account or of all; expired ones included until they are swept. */
export async function listTokens(
  app: App,
  input: z.input<typeof PageInput> = {},
): Promise<{ tokens: AdminToken[]; next_cursor: string | null }> {
  const { account_id = null, ...wanted } = parseInput(PageInput, input)
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
  return { tokens: rows.map((row) => ({ ...toEntry(row), username: row.username })), next_cursor }
}

const OneInput = z.strictObject({ token_id: ApiTokenId })

/** Ends one token, whosever it is; `revoked: false` for an unknown one. */
export async function revokeToken(
  app: App,
  input: z.input<typeof OneInput>,
  operator: Operator,
): Promise<{ revoked: boolean }> {
  const { token_id } = parseInput(OneInput, input)
  return await operate(app, 'token_revoke', operator, async ({ db, audit, detail }) => {
    const ended = await db.first<{ account_id: string }>(sql`
      delete from api_token where id = ${token_id} returning account_id`)
    if (ended) audit('token_revoke', { token_id, ...detail }, { target_account_id: ended.account_id })
    return { revoked: ended !== undefined }
  })
}

const AllInput = z.strictObject({ account_id: Uuid })

/** Ends every token of an account, expired ones included. Refuses with `account_not_found`. */
export async function revokeTokens(
  app: App,
  input: z.input<typeof AllInput>,
  operator: Operator,
): Promise<{ count: number }> {
  const { account_id } = parseInput(AllInput, input)
  return await operate(app, 'token_revoke_all', operator, async ({ db, audit, detail }) => ({
    count: await endTokens(db, audit, account_id, detail),
  }))
}

/** Ends every token of every account that existed when the call began. */
export const revokeEveryToken = (
  app: App,
  _input: Record<never, never>,
  operator: Operator,
): Promise<EndedForEveryone> =>
  endForEveryone(app, 'token_revoke_all', { table: sql`api_token`, live: sql`true` }, operator)

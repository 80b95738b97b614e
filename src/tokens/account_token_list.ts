import { z } from 'zod'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
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

import { z } from 'zod'
import { query } from '../core/action.ts'
import { sql } from '../db/db.ts'
import { TokenEntry, toEntry, tokenColumns } from './tokens.ts'

const shown = 200

export const account_token_list = query({
  doc: 'The API tokens of the caller’s account, newest first, expired ones included until they are swept.',
  auth: { account: 'required', actor: 'none' },
  output: z.object({ tokens: z.array(TokenEntry) }),
  async handler(_input, { account, db }) {
    const rows = await db.rows<TokenEntry>(sql`
      select ${tokenColumns} from api_token where account_id = ${account.id}::uuid
      order by created_at desc, id desc limit ${sql.raw(shown)}`)
    return { tokens: rows.map(toEntry) }
  },
})

import { z } from 'zod'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { ApiTokenId } from './tokens.ts'

/** Of any account; `revoked` is false for an unknown token. */
export const revokeToken = operation({
  doc: 'End one token by its id (tok_…).',
  input: z.strictObject({ token_id: ApiTokenId }),
  event: 'token_revoke',
  async handler({ token_id }, { db, audit, detail }) {
    const ended = await db.first<{ account_id: string }>(sql`
      delete from api_token where id = ${token_id} returning account_id`)
    if (ended) audit('token_revoke', { token_id, ...detail }, { target_account_id: ended.account_id })
    return { revoked: ended !== undefined }
  },
  command: {
    name: 'token revoke',
    args: { token_id: 'TOKEN' },
    phrase: ({ revoked }) => (revoked ? 'The token ended.' : 'There is no such token.'),
  },
})

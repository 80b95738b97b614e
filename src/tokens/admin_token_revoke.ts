import { z } from 'zod'
import { mutation } from '../core/declare.ts'
import type { Work } from '../core/mutate.ts'
import type { Detail } from '../core/operate.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { ApiTokenId } from './tokens.ts'

export const admin_token_revoke = mutation({
  doc: 'End one API token of any account. `revoked` is false for an unknown token.',
  auth: { role: 'admin' },
  event: 'token_revoke',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ token_id: ApiTokenId }),
  output: z.object({ ok: z.literal(true), revoked: z.boolean() }),
  handler: async ({ token_id }, { credential, ...work }) => ({
    ok: true as const,
    revoked: await end(work, token_id, { credential_type: credential.type }),
  }),
})

/** Works for any account; `revoked` is false for an unknown token. */
export const revokeToken = operation({
  doc: 'End one token by its id (tok_…).',
  input: z.strictObject({ token_id: ApiTokenId }),
  event: 'token_revoke',
  handler: async ({ token_id }, work) => ({ revoked: await end(work, token_id, work.detail) }),
  command: {
    name: 'token revoke',
    args: { token_id: 'TOKEN' },
    phrase: ({ revoked }) => (revoked ? 'The token is revoked.' : 'There is no such token.'),
  },
})

async function end(
  { db, audit }: Pick<Work, 'db' | 'audit'>,
  token_id: string,
  detail: Detail,
): Promise<boolean> {
  const ended = await db.first<{ account_id: string }>(sql`
    delete from api_token where id = ${token_id} returning account_id`)
  if (ended) audit('token_revoke', { token_id, ...detail }, { target_account_id: ended.account_id })
  return ended !== undefined
}

import { z } from 'zod'
import { endForEveryone } from '../accounts/end-for-everyone.ts'
import { type Credentials, endAll } from '../accounts/ending.ts'
import { mutation } from '../core/action.ts'
import { account, counted, operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'

const tokens: Credentials = {
  event: 'token_revoke_all',
  table: sql`api_token`,
  live: sql`true`,
}

export const admin_token_revoke_all = mutation({
  doc: 'End every API token of an account, expired ones included.',
  auth: { role: 'admin' },
  event: 'token_revoke_all',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid }),
  output: z.object({ ok: z.literal(true), count: z.int() }),
  errors: ['account_not_found'],
  async handler({ account_id }, { credential, ...work }) {
    const count = await endAll(tokens, work, account_id, { credential_type: credential.type })
    return { ok: true as const, count }
  },
})

export const revokeTokens = operation({
  doc: 'End every token of an account, expired ones included.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'token_revoke_all',
  errors: ['account_not_found'],
  handler: async ({ account_id }, work) => ({ count: await endAll(tokens, work, account_id, work.detail) }),
  command: {
    name: 'token revoke-all',
    args: { account_id: account },
    phrase: ({ count }) => `${counted(count, 'token')} ended.`,
  },
})

export const revokeEveryToken = operation({
  doc: 'End every token of every account that exists when the command begins.',
  event: 'token_revoke_all',
  ownTransactions: true,
  handler: (_input, { app, operate }) => endForEveryone(app, tokens, operate),
  command: {
    name: 'token revoke-all --everyone',
    confirm: 'Every script of every account needs a new token.',
    phrase: ({ count, accounts }) => `${counted(count, 'token')} of ${counted(accounts, 'account')} ended.`,
  },
})

import { z } from 'zod'
import { endForEveryone } from '../accounts/end-for-everyone.ts'
import { type Detail, noAccount } from '../accounts/ending.ts'
import { lockAccounts } from '../accounts/locks.ts'
import type { Audit } from '../audit/audit.ts'
import { mutation } from '../core/action.ts'
import { account, counted, operation } from '../core/operation.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'

export const admin_token_revoke_all = mutation({
  doc: 'End every API token of an account, expired ones included.',
  auth: { role: 'admin' },
  event: 'token_revoke_all',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid }),
  output: z.object({ ok: z.literal(true), count: z.int() }),
  errors: ['account_not_found'],
  async handler({ account_id }, { credential, db, audit }) {
    const count = await endTokens(db, audit, account_id, { credential_type: credential.type })
    return { ok: true as const, count }
  },
})

/** Locks a live account, ends all its tokens, and returns how many. */
async function endTokens(db: Queryable, audit: Audit, account_id: string, detail: Detail): Promise<number> {
  const account = (await lockAccounts(db, [account_id])).get(account_id)
  if (!account || account.deleted_at !== null) throw noAccount('token_revoke_all', account_id, detail)
  const count = await db.run(sql`delete from api_token where account_id = ${account_id}::uuid`)
  if (count > 0) audit('token_revoke_all', { count, ...detail }, { target_account_id: account_id })
  return count
}

export const revokeTokens = operation({
  doc: 'End every token of an account, expired ones included.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'token_revoke_all',
  errors: ['account_not_found'],
  handler: async ({ account_id }, { db, audit, detail }) => ({
    count: await endTokens(db, audit, account_id, detail),
  }),
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
  handler: (_input, { app, operate }) =>
    endForEveryone(app, 'token_revoke_all', { table: sql`api_token`, live: sql`true` }, operate),
  command: {
    name: 'token revoke-all --everyone',
    confirm: 'Every script of every account needs a new token.',
    phrase: ({ count, accounts }) => `${counted(count, 'token')} of ${counted(accounts, 'account')} ended.`,
  },
})

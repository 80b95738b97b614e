import { z } from 'zod'
import { endForEveryone } from '../accounts/end-for-everyone.ts'
import { type Detail, noAccount } from '../accounts/ending.ts'
import { lockAccounts } from '../accounts/locks.ts'
import type { Audit } from '../audit/audit.ts'
import { mutation } from '../core/action.ts'
import { account, counted, operation } from '../core/operation.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'

export const admin_session_revoke_all = mutation({
  doc: 'End every session of an account, which may be the caller’s own.',
  auth: { role: 'admin' },
  event: 'session_revoke_all',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid }),
  output: z.object({ ok: z.literal(true), count: z.int() }),
  errors: ['account_not_found'],
  async handler({ account_id }, { credential, db, audit }) {
    const count = await endSessions(db, audit, account_id, { credential_type: credential.type })
    return { ok: true as const, count }
  },
})

/** Locks a live account, ends its unexpired sessions, and returns how many. */
async function endSessions(db: Queryable, audit: Audit, account_id: string, detail: Detail): Promise<number> {
  const account = (await lockAccounts(db, [account_id])).get(account_id)
  if (!account || account.deleted_at !== null) throw noAccount('session_revoke_all', account_id, detail)
  const count = await db.run(sql`
    delete from auth_session where account_id = ${account_id}::uuid and expires_at > now()`)
  if (count > 0) audit('session_revoke_all', { count, ...detail }, { target_account_id: account_id })
  return count
}

export const revokeSessions = operation({
  doc: 'End every session of an account. Its owner has to sign in again.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'session_revoke_all',
  errors: ['account_not_found'],
  handler: async ({ account_id }, { db, audit, detail }) => ({
    count: await endSessions(db, audit, account_id, detail),
  }),
  command: {
    name: 'session revoke-all',
    args: { account_id: account },
    phrase: ({ count }) => `${counted(count, 'session')} ended.`,
  },
})

export const revokeEverySession = operation({
  doc: 'End every session of every account that exists when the command begins.',
  event: 'session_revoke_all',
  ownTransactions: true,
  handler: (_input, { app, operate }) =>
    endForEveryone(
      app,
      'session_revoke_all',
      { table: sql`auth_session`, live: sql`expires_at > now()` },
      operate,
    ),
  command: {
    name: 'session revoke-all --everyone',
    confirm: 'Everybody has to sign in again.',
    phrase: ({ count, accounts }) => `${counted(count, 'session')} of ${counted(accounts, 'account')} ended.`,
  },
})

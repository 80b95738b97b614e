import { z } from 'zod'
import { endForEveryone } from '../accounts/end-for-everyone.ts'
import { type Credentials, endAll } from '../accounts/ending.ts'
import { mutation } from '../core/action.ts'
import { account, counted, operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'

const sessions: Credentials = {
  event: 'session_revoke_all',
  table: sql`auth_session`,
  live: sql`expires_at > now()`,
}

export const admin_session_revoke_all = mutation({
  doc: 'End every session of an account, which may be the caller’s own.',
  auth: { role: 'admin' },
  event: 'session_revoke_all',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid }),
  output: z.object({ ok: z.literal(true), count: z.int() }),
  errors: ['account_not_found'],
  async handler({ account_id }, { credential, ...work }) {
    const count = await endAll(sessions, work, account_id, { credential_type: credential.type })
    return { ok: true as const, count }
  },
})

export const revokeSessions = operation({
  doc: 'End every session of an account. Its owner has to sign in again.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'session_revoke_all',
  errors: ['account_not_found'],
  handler: async ({ account_id }, work) => ({ count: await endAll(sessions, work, account_id, work.detail) }),
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
  handler: (_input, { app, operate }) => endForEveryone(app, sessions, operate),
  command: {
    name: 'session revoke-all --everyone',
    confirm: 'Everybody has to sign in again.',
    phrase: ({ count, accounts }) => `${counted(count, 'session')} of ${counted(accounts, 'account')} ended.`,
  },
})

import { z } from 'zod'
import { SessionId } from '../accounts/formats.ts'
import { mutation } from '../core/declare.ts'
import type { Work } from '../core/mutate.ts'
import type { Detail } from '../core/operate.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'

export const admin_session_revoke = mutation({
  doc: 'End one session of any account. `revoked` is false for an expired or unknown session.',
  auth: { role: 'admin' },
  event: 'session_revoke',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ session_id: SessionId }),
  output: z.object({ ok: z.literal(true), revoked: z.boolean() }),
  handler: async ({ session_id }, { credential, ...work }) => ({
    ok: true as const,
    revoked: await end(work, session_id, { credential_type: credential.type }),
  }),
})

/** Works for any account; `revoked` is false for an unknown or expired session. */
export const revokeSession = operation({
  doc: 'End one session by its id.',
  input: z.strictObject({ session_id: SessionId }),
  event: 'session_revoke',
  handler: async ({ session_id }, work) => ({ revoked: await end(work, session_id, work.detail) }),
  command: {
    name: 'session revoke',
    args: { session_id: 'SESSION' },
    phrase: ({ revoked }) => (revoked ? 'The session is revoked.' : 'There is no such session.'),
  },
})

async function end(
  { db, audit }: Pick<Work, 'db' | 'audit'>,
  session_id: string,
  detail: Detail,
): Promise<boolean> {
  const ended = await db.first<{ account_id: string }>(sql`
    delete from auth_session where id = ${session_id} and expires_at > now() returning account_id`)
  if (ended) audit('session_revoke', { session_id, ...detail }, { target_account_id: ended.account_id })
  return ended !== undefined
}

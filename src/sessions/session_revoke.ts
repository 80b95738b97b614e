import { z } from 'zod'
import { SessionId } from '../accounts/formats.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'

/** Of any account; `revoked` is false for an unknown or expired session. */
export const revokeSession = operation({
  doc: 'End one session by its id.',
  input: z.strictObject({ session_id: SessionId }),
  event: 'session_revoke',
  async handler({ session_id }, { db, audit, detail }) {
    const ended = await db.first<{ account_id: string }>(sql`
      delete from auth_session where id = ${session_id} and expires_at > now() returning account_id`)
    if (ended) audit('session_revoke', { session_id, ...detail }, { target_account_id: ended.account_id })
    return { revoked: ended !== undefined }
  },
  command: {
    name: 'session revoke',
    args: { session_id: 'SESSION' },
    phrase: ({ revoked }) => (revoked ? 'The session ended.' : 'There is no such session.'),
  },
})

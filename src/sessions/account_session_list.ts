import { z } from 'zod'
import { query } from '../core/action.ts'
import { sql } from '../db/db.ts'
import { AuthSession, sessionColumns } from './sessions.ts'

/** The default cap on sessions per account is far below it. */
const sessionsMax = 50

export const account_session_list = query({
  doc: 'The unexpired sessions of the caller’s account, newest first.',
  auth: { account: 'required', actor: 'none' },
  before_enrolment: true,
  output: z.object({ sessions: z.array(AuthSession) }),
  async handler(_input, { account, db }) {
    const sessions = await db.rows<z.output<typeof AuthSession>>(sql`
      select ${sessionColumns} from auth_session s
      where account_id = ${account.id}::uuid and expires_at > now()
      order by created_at desc, id desc limit ${sql.raw(sessionsMax)}`)
    return { sessions }
  },
})

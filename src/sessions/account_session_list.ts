import { z } from 'zod'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { AuthSession, sessionColumns } from './sessions.ts'

/** Far more than an account has by default. */
const sessionsMax = 50

export const account_session_list = query({
  doc: 'The unexpired sessions of the caller’s account, newest first. `current` marks the one that makes this call.',
  auth: { account: 'required', actor: 'none' },
  before_enrolment: true,
  output: z.object({ sessions: z.array(AuthSession.extend({ current: z.boolean() })) }),
  async handler(_input, { account, credential, db }) {
    const sessions = await db.rows<z.output<typeof AuthSession>>(sql`
      select ${sessionColumns} from auth_session s
      where account_id = ${account.id}::uuid and expires_at > now()
      order by created_at desc, id desc limit ${sql.raw(sessionsMax)}`)
    const current = credential.type === 'session' ? credential.id : null
    return { sessions: sessions.map((one) => ({ ...one, current: one.id === current })) }
  },
})

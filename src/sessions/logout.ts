import { z } from 'zod'
import { callerSubject, mutate } from '../core/mutate.ts'
import { route } from '../core/route.ts'
import { sql } from '../db/db.ts'

export const logout = route({
  doc: 'End the current session and clear its cookie.',
  method: 'POST',
  path: '/logout',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  alwaysClears: true,
  before_enrolment: true,
  output: z.object({ ok: z.literal(true), username: z.string() }),
  async handler(_input, { app, account, credential, ip }) {
    const session_id = credential.id as string
    const subject = { ...callerSubject({ account }, ip), target_account_id: account.id }
    await mutate(app, 'logout', { subject }, async ({ single }) => {
      await single(
        sql`ended as (
          delete from auth_session where id = ${session_id} and account_id = ${account.id}::uuid returning id)`,
        'ended',
        (audit) => audit('logout', { session_id }),
      )
    })
    return { body: { ok: true as const, username: account.username }, cookie: app.sessionCookie.clear() }
  },
})

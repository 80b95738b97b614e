import { z } from 'zod'
import { lockLiveAccount } from '../accounts/locks.ts'
import { sentBack } from '../auth/cookie.ts'
import { operation } from '../core/operation.ts'
import { Uuid } from '../wire/types.ts'
import { auditEnded, endForeignSession, startSession } from './sessions.ts'

export type CreatedSession = {
  session_id: string
  /** The value of the `Set-Cookie` header. Send it only after the commit. */
  set_cookie: string
  /** The value of the `Cookie` header of requests with this session. */
  cookie: string
  expires_at: string
}

/** A library call only: the caller vouches for the person, so no route and no command reaches it. */
export const createSession = operation({
  doc: 'Open a session for a person whom your code has identified. It replaces the session of the `Cookie` header in `presented`.',
  input: z.strictObject({
    account_id: Uuid,
    /** True: your code has verified a second factor too. */
    second_factor: z.boolean().default(false),
    presented: z.string().nullish(),
  }),
  event: 'login',
  errors: ['account_not_found'],
  ownTransactions: true,
  async handler({ account_id, second_factor, presented }, { app, operator, operate, fail }) {
    const carriers = { cookie: app.sessionCookie.read(presented ?? undefined) }
    const ip = operator.ip ?? null
    return await operate(async ({ db, audit, afterCommit, detail: { via } }): Promise<CreatedSession> => {
      await lockLiveAccount(db, account_id, fail)
      const proof = { methods: ['library'], strong: second_factor } as const
      const session = await startSession(app, db, {
        account_id,
        proof,
        presented: carriers,
        ip: ip ?? undefined,
      })
      const { session_id, cookie: set_cookie, expires_at } = session
      audit('login', { session_id, methods: [...proof.methods], via }, { target_account_id: account_id })
      auditEnded(audit, session)
      afterCommit(() => endForeignSession(app, account_id, carriers, ip))
      return { session_id, set_cookie, cookie: sentBack(set_cookie), expires_at }
    })
  },
})

import type { App } from '../core/app.ts'
import type { Work } from '../core/mutate.ts'
import { sql } from '../db/db.ts'
import type { Notice } from '../registry/messages.ts'
import { insertMessage, triedFor } from './outbox.ts'

/**
 * Notifies the owner of an account of a change, in the transaction of the change. The notice goes to the address that
 * is verified at the time of the call, so call it before a change of the address is written. Does nothing if the
 * address is not verified, or if notices or messages are off.
 */
export async function notify(
  app: App,
  { db, afterCommit }: Pick<Work, 'db' | 'afterCommit'>,
  account_id: string,
  notice: Notice,
): Promise<void> {
  const { notices, mail } = app.config
  if (!notices || mail === 'off') return
  const values = sql`(select id as account_id, null::uuid as invite_id, email, now() + ${triedFor} as expires_at
    from account where id = ${account_id}::uuid and email_verified and email is not null) one`
  await db.run(insertMessage(app, { purpose: 'notice', notice, values }))
  afterCommit(() => app.outbox.wake())
}

import { z } from 'zod'
import { Email } from '../accounts/formats.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { StartError } from '../errors.ts'
import { claimOne } from './claim.ts'
import { deliverOne } from './deliver.ts'
import { insertMessage, triedFor } from './outbox.ts'
import { openTransport } from './transport.ts'

export const sendTestMessage = operation({
  doc: 'Send a test message to an address at once, and say how it went.',
  input: z.strictObject({ to: Email }),
  async handler({ to }, { app }) {
    const deliver = await openTransport(app)
    if (!deliver)
      throw new StartError(
        'messages_off',
        'No messages are sent: set CELLKEEP_SMTP_URL and CELLKEEP_MAIL_FROM, or CELLKEEP_MAIL=file to try it.',
        1,
      )
    const values = sql`(select null::uuid as account_id, null::uuid as invite_id, ${to} as email,
      now() + ${triedFor} as expires_at) one`
    const row = await claimOne(app, insertMessage(app, { purpose: 'test', values }))
    const outcome = await deliverOne(app, deliver, row)
    return { message_id: row.id, state: outcome?.state ?? 'queued', error: outcome?.error ?? null }
  },
  command: {
    name: 'mail test',
    args: { to: 'ADDRESS' },
    phrase: ({ state, error, message_id }) =>
      state === 'sent'
        ? `Message ${message_id} was sent.`
        : `Message ${message_id} was not sent: ${error}.${state === 'queued' ? ' The server tries it again.' : ''}`,
  },
})

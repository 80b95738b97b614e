import { z } from 'zod'
import { Email } from '../accounts/formats.ts'
import { operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { StartError } from '../errors.ts'
import { claimOne, type MessageError } from './claim.ts'
import { deliverOne } from './deliver.ts'
import { insertMessage, triedFor } from './outbox.ts'
import { openTransport } from './transport.ts'

export const sendTestMessage = operation({
  doc: 'Send a test message to an address at once, and report the result.',
  input: z.strictObject({ to: Email }),
  async handler({ to }, { app }) {
    const deliver = await openTransport(app)
    if (!deliver)
      throw new StartError(
        'messages_off',
        'No messages are sent. Set CELLKEEP_SMTP_URL and CELLKEEP_MAIL_FROM or, for a trial, CELLKEEP_MAIL=file.',
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
    details: 'Exits with 0 if the message was sent, else with 1.',
    phrase: ({ state, error, message_id }) =>
      state === 'sent'
        ? `Message ${message_id} was sent.`
        : [
            `Message ${message_id} was not sent: ${error}.${state === 'queued' ? ' The server will try again.' : ''}`,
            ...(error && remedies[error] ? [remedies[error]] : []),
          ],
    failed: ({ state }) => state !== 'sent',
  },
})

/** What to do next, by the error. */
const remedies: Partial<Record<MessageError, string>> = {
  timeout:
    'The mail server did not answer within 30 s. Check CELLKEEP_SMTP_URL, and that no firewall is in between.',
  unreachable:
    'Check CELLKEEP_SMTP_URL, including its user and password, and that the mail server is running. The warning has the code.',
  refused: 'The mail server refused the message. Check its log, CELLKEEP_MAIL_FROM and the address.',
  undeliverable: 'Mail to this address would reach another one. Give the address in its usual form.',
  hook_failed: 'The warning says where the transport failed and with which code.',
}

import { z } from 'zod'
import { Email, emailKey } from '../accounts/formats.ts'
import { lockWithFreshSession } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { makeTicket, voidTickets } from '../tickets/tickets.ts'
import { writeEmail } from './write-email.ts'

export const account_email_change = mutation({
  doc: 'Change the e-mail of the caller’s account. A link is mailed to a new address, and nothing changes until it is confirmed (`pending`); null removes the address at once.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'], fresh: true },
  event: 'account_update',
  rate_limit: 'account',
  rate_limit_group: 'mail',
  enabled: ({ mail }) => mail !== 'off',
  input: z.strictObject({ email: Email.nullable() }),
  output: z.object({ ok: z.literal(true), pending: z.boolean() }),
  errors: ['account_vanished', 'authentication_required'],
  async handler({ email }, { app, account, credential, fail, ...work }) {
    const own = await lockWithFreshSession(app, work.db, { account, credential })
    const email_key = emailKey(email)
    // Ends links to other addresses: a mistyped address can be corrected before a stranger there confirms it.
    await work.db.run(sql`
      ${voidTickets(own.id, ['email_change'])} and t.email_key is distinct from ${email_key}`)
    if (email !== null) {
      // Not compared with other accounts: only a person who proves the mailbox learns that it has an account.
      await makeTicket(app, work, {
        purpose: 'email_change',
        account_id: own.id,
        delivery: 'mailed',
        email,
        email_key,
        created_by: null,
        detail: { credential_type: credential.type },
      })
      if (emailKey(own.email) !== email_key) await notify(app, work, own.id, 'email_change_requested')
    } else if (own.email !== null) {
      await writeEmail(app, work, own, { email: null, verified: false, by: null }, () =>
        fail('account_vanished'),
      )
      work.audit('account_update', { change: 'email_cleared' }, { target_account_id: own.id })
    }
    return { ok: true as const, pending: email !== null }
  },
})

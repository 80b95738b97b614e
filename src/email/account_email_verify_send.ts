import { z } from 'zod'
import { lockWithSession } from '../accounts/locks.ts'
import { mutation } from '../core/declare.ts'
import { sendVerification } from './verification.ts'

export const account_email_verify_send = mutation({
  doc: 'Mail a link that verifies the e-mail of the caller’s account. `sent` is false if the account has no e-mail, or a verified one.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  event: 'ticket_create',
  rate_limit: 'account',
  rate_limit_group: 'mail',
  enabled: ({ mail }) => mail !== 'off',
  output: z.object({ ok: z.literal(true), sent: z.boolean() }),
  errors: ['account_vanished', 'authentication_required'],
  async handler(_input, { app, account, credential, fail, ...work }) {
    const { id } = await lockWithSession(work.db, account.id, credential.id)
    const sent = await sendVerification(app, work, id, { detail: { credential_type: credential.type } })
    return { ok: true as const, sent }
  },
})

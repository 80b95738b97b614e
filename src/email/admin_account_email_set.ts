import { z } from 'zod'
import { Email } from '../accounts/formats.ts'
import { mutation } from '../core/declare.ts'
import { freshAdmin, lockTarget } from '../sign-in/privileged.ts'
import { Uuid } from '../wire/types.ts'
import { assignEmail } from './write-email.ts'

export const admin_account_email_set = mutation({
  doc: 'Set or remove the e-mail of an account that holds neither admin nor keeper; `verified` marks it as verified.',
  auth: freshAdmin,
  event: 'account_update',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid, email: Email.nullable(), verified: z.boolean().default(false) }),
  output: z.object({ ok: z.literal(true), changed: z.boolean() }),
  errors: ['authentication_required', 'account_not_found', 'privileged_target', 'email_taken'],
  async handler(
    { account_id, email, verified: isKnown },
    { app, account, credential, actor, fail, ...work },
  ) {
    const target = await lockTarget(app, work.db, 'account_update', account_id, {
      account,
      credential,
      actor,
    })
    const set = { email, verified: isKnown && email !== null, by: actor.id }
    return { ok: true as const, changed: await assignEmail(app, work, target, set, fail) }
  },
})

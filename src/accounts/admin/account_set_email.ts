import { z } from 'zod'
import { onlyVia } from '../../core/operate.ts'
import { account, operation } from '../../core/operation.ts'
import { sql } from '../../db/db.ts'
import { assignEmail } from '../../email/write-email.ts'
import { refusal } from '../../errors.ts'
import { issue } from '../../wire/issues.ts'
import { Uuid } from '../../wire/types.ts'
import { Email } from '../formats.ts'
import { lockLiveAccount } from '../locks.ts'

export const setEmail = operation({
  doc: 'Set the e-mail of an account, unverified, or remove it.',
  input: z.strictObject({ account_id: Uuid, email: Email.nullable() }),
  event: 'account_update',
  errors: ['account_not_found', 'email_taken'],
  async handler({ account_id, email }, { app, detail, by, fail, ...work }) {
    const locked = await lockLiveAccount(work.db, account_id, fail)
    const set = { email, verified: false, by, ...onlyVia(detail) }
    return { changed: await assignEmail(app, work, locked, set, fail) }
  },
  command: {
    name: 'account set-email',
    args: { account_id: account, email: 'ADDRESS | --none' },
    done: ({ email }) => ({ email, email_verified: false }),
    phrase: ({ changed }, { who, email }) => {
      if (email === null) return `${who} ${changed ? 'now has' : 'has'} no e-mail.`
      return `${who} ${changed ? `now has the e-mail ${email}` : 'already has this e-mail'}, not verified yet.`
    },
  },
})

/** Changes nothing if the e-mail is verified already. Refuses an account without an e-mail as invalid input. */
export const verifyEmail = operation({
  doc: 'Mark the e-mail of an account as verified.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'account_update',
  errors: ['account_not_found'],
  async handler({ account_id }, { db, audit, detail, by, fail }) {
    const { email } = await lockLiveAccount(db, account_id, fail)
    if (email === null)
      throw refusal('invalid_params', {
        issues: [issue(['account_id'], 'custom', 'The account has no e-mail to verify.')],
      })
    const done = await db.run(sql`
      update account set email_verified = true, updated_at = now(), updated_by = ${by}::uuid
      where id = ${account_id}::uuid and not email_verified`)
    const change = { change: 'email_verified', ...onlyVia(detail) } as const
    if (done > 0) audit('account_update', change, { target_account_id: account_id })
    return { changed: done > 0 }
  },
  command: {
    name: 'account verify-email',
    args: { account_id: account },
    done: { email_verified: true },
    phrase: ({ changed }, { who }) =>
      changed ? `The e-mail of ${who} is verified.` : `The e-mail of ${who} was already verified.`,
  },
})

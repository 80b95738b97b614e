import { z } from 'zod'
import { account, operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { refuseTakenEmail } from './accounts.ts'
import { onlyVia } from './ending.ts'
import { Email, fold } from './formats.ts'
import { lockLiveAccount } from './locks.ts'

export const setEmail = operation({
  doc: 'Set the e-mail of an account, unverified, or remove it.',
  input: z.strictObject({ account_id: Uuid, email: Email.nullable() }),
  event: 'account_update',
  errors: ['account_not_found', 'email_taken'],
  async handler({ account_id, email }, { db, audit, detail, by, fail }): Promise<void> {
    await lockLiveAccount(db, account_id, fail)
    const set = sql`
      update account set email = ${email}, email_key = ${email === null ? null : fold(email)},
        email_verified = false, updated_at = now(), updated_by = ${by}::uuid
      where id = ${account_id}::uuid`
    await db.run(set).catch(refuseTakenEmail(fail))
    audit('account_update', { change: 'email', ...onlyVia(detail) }, { target_account_id: account_id })
  },
  command: {
    name: 'account set-email',
    args: { account_id: account, email: 'ADDRESS | --none' },
    done: ({ email }) => ({ email, email_verified: false }),
    phrase: (_, { who, email }) =>
      email === null ? `${who} has no e-mail now.` : `${who} has the e-mail ${email}, not verified yet.`,
  },
})

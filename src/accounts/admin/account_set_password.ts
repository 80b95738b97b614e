import { z } from 'zod'
import { account, counted, operation, password } from '../../core/operation.ts'
import { sql } from '../../db/db.ts'
import { notify } from '../../delivery/notify.ts'
import { Uuid } from '../../wire/types.ts'
import { endCredentials } from '../ending.ts'
import { Password } from '../formats.ts'
import { lockLiveAccount } from '../locks.ts'
import { refuseWeak } from '../new-password.ts'

export const setPassword = operation({
  doc: 'Set a new password. Every session and token of the account ends.',
  input: z.strictObject({ account_id: Uuid, password: Password }),
  event: 'password_change',
  errors: ['account_not_found', 'busy'],
  refine: async ({ account_id, password }, { app }) => {
    refuseWeak(app, 'invalid_params', ['password', password])
    return { account_id, password, password_hash: await app.passwords.hash(password) }
  },
  async handler({ account_id, password, password_hash }, { app, db, audit, afterCommit, detail, by, fail }) {
    const locked = await lockLiveAccount(db, account_id, fail)
    refuseWeak(app, 'invalid_params', ['password', password], locked)
    await db.run(sql`
      update account set password_hash = ${password_hash}, hash_foreign = false, updated_at = now(), updated_by = ${by}::uuid
      where id = ${account_id}::uuid`)
    const ended = await endCredentials(db, account_id)
    await notify(app, { db, afterCommit }, account_id, 'password_changed')
    audit('password_change', { ...ended, ...detail }, { target_account_id: account_id })
    return ended
  },
  command: {
    name: 'account set-password',
    args: { account_id: account, password },
    details: 'Prompts for the password, or reads it from standard input.',
    phrase: ({ sessions_revoked, tokens_revoked }, { who }) =>
      `${who} has a new password; ${counted(sessions_revoked, 'session')} and ${counted(tokens_revoked, 'token')} ended.`,
  },
})

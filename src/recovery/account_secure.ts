import { z } from 'zod'
import { endCredentials } from '../accounts/ending.ts'
import { lockLiveAccount } from '../accounts/locks.ts'
import { noPassword } from '../auth/password.ts'
import { account, counted, operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { makeResetLink } from './reset-link.ts'

export const secureAccount = operation({
  doc: 'Take an account back from an intruder: end its password, passkeys, second factors, provider links, sessions and tokens, and make a link to set a new password.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'account_secure',
  errors: ['account_not_found'],
  async handler({ account_id }, { app, by, detail, fail, ...work }) {
    const { db, audit } = work
    const locked = await lockLiveAccount(db, account_id, fail)
    // In one statement, and each table after its account: the order of locks everywhere else.
    await db.run(sql`
      with password as (
        update account set password_hash = ${noPassword}, hash_foreign = false, updated_at = now(), updated_by = ${by}::uuid
        where id = ${account_id}::uuid
      ), totp as (delete from account_totp where account_id = ${account_id}::uuid
      ), codes as (delete from account_recovery_code where account_id = ${account_id}::uuid
      ), passkeys as (delete from account_passkey where account_id = ${account_id}::uuid
      ), links as (delete from account_link where account_id = ${account_id}::uuid)
      select`)
    const ended = await endCredentials(db, account_id)
    audit('account_secure', { ...ended, ...detail }, { target_account_id: account_id })
    const made = await makeResetLink(app, work, locked, { reveal: true, created_by: by, detail })
    return { ...ended, ...made }
  },
  command: {
    name: 'account secure',
    args: { account_id: account },
    confirm:
      'Nobody can sign in to this account until someone sets a password with the link, or with another one mailed to the e-mail of the account.',
    details:
      'The link works once, within 24 hours. Pass it on over a channel that you trust. The e-mail of the account stays, and\nwhoever reads that mailbox can request a link. If it is not the owner’s, first run `account set-email`, which ends\nearlier links.',
    phrase: ({ link, sessions_revoked, tokens_revoked }, { who }) => [
      `${who} is secured: ${counted(sessions_revoked, 'session')} and ${counted(tokens_revoked, 'token')} ended, and no way to sign in is left. The link to set a new password:`,
      `${link}`,
    ],
  },
})

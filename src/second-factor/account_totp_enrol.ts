import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { lockWithFreshSession } from '../accounts/locks.ts'
import { hasTotp } from '../config/second-factor.ts'
import { mutation } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { pendingFor } from './pending.ts'
import { base32, newSecret, sealSecret, totpUri } from './totp.ts'

export const account_totp_enrol = mutation({
  doc: 'Begin to add TOTP as a second factor. The answer has the secret for an authenticator app, shown once. TOTP takes effect once it is confirmed.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'], fresh: true },
  event: 'factor_add',
  secret_reply: true,
  before_enrolment: true,
  rate_limit: 'account',
  rate_limit_group: 'credential',
  enabled: hasTotp,
  output: z.object({
    ok: z.literal(true),
    secret: z.string(),
    uri: z.string(),
    expires_at: z.string(),
  }),
  async handler(_input, { app, account, credential, db }) {
    await lockWithFreshSession(app, db, { account, credential })
    const [id, secret] = [randomUUID(), newSecret()]
    await db.run(sql`
      delete from account_totp where account_id = ${account.id}::uuid and confirmed_at is null`)
    const { expires_at } = await db.one<{ expires_at: string }>(sql`
      insert into account_totp (id, account_id, secret_sealed, session_id)
      values (${id}::uuid, ${account.id}::uuid, ${sealSecret(app, secret, id, account.id)}, ${credential.id})
      returning created_at + ${pendingFor} as expires_at`)
    return {
      ok: true as const,
      secret: base32(secret),
      uri: totpUri(app, account.username, secret),
      expires_at,
    }
  },
})

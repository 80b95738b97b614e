import { z } from 'zod'
import { lockLiveAccount } from '../accounts/locks.ts'
import { sha256Hex } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import { mutation } from '../core/declare.ts'
import type { Detail } from '../core/operate.ts'
import { account, counted, operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { freshAdmin, lockTarget } from '../sign-in/privileged.ts'
import { Uuid } from '../wire/types.ts'
import { type FactorWork, factorRemoved } from './factors.ts'

export const admin_account_factors_clear = mutation({
  doc: 'Remove the second factors of an account whose owner has lost them. Its passkeys still sign in by themselves.',
  auth: freshAdmin,
  event: 'factor_remove',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid }),
  output: z.object({ ok: z.literal(true), totp: z.boolean(), passkeys: z.int() }),
  errors: ['authentication_required', 'account_not_found', 'privileged_target'],
  async handler({ account_id }, { app, account, credential, actor, ...work }) {
    await lockTarget(app, work.db, 'factor_remove', account_id, { account, credential, actor })
    return {
      ok: true as const,
      ...(await clear(app, work, account_id, { credential_type: credential.type })),
    }
  },
})

/**
 * Deletes a passkey that is only a second step; any other stays as a first factor. The caller holds the account lock.
 */
async function clear(
  app: App,
  work: FactorWork,
  account_id: string,
  detail: Detail,
): Promise<{ totp: boolean; passkeys: number }> {
  const { totps, passkeys } = await work.db.one<{ totps: string[]; passkeys: string[] }>(sql`
    with totps as (
      delete from account_totp where account_id = ${account_id}::uuid returning id, confirmed_at
    ), kept as (
      update account_passkey set second_factor = false
      where account_id = ${account_id}::uuid and second_factor and first_factor returning id
    ), gone as (
      delete from account_passkey
      where account_id = ${account_id}::uuid and second_factor and not first_factor returning id
    )
    select array(select id from totps where confirmed_at is not null) as totps,
      array(select id from kept union all select id from gone order by id) as passkeys`)
  if (totps.length + passkeys.length > 0) {
    const target = { target_account_id: account_id }
    for (const factor_id of totps)
      work.audit('factor_remove', { factor: 'totp', factor_id, ...detail }, target)
    for (const id of passkeys)
      work.audit('factor_remove', { factor: 'passkey', factor_id: sha256Hex(id), ...detail }, target)
    await factorRemoved(app, work, account_id, detail, { byOwner: false })
  }
  return { totp: totps.length > 0, passkeys: passkeys.length }
}

/** Works for any account, including the keeper's. */
export const clearFactors = operation({
  doc: 'Remove the second factors and recovery codes of an account, for example after a lost phone. First verify who is asking.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'factor_remove',
  errors: ['account_not_found'],
  async handler({ account_id }, { app, detail, fail, ...work }) {
    await lockLiveAccount(work.db, account_id, fail)
    return await clear(app, work, account_id, detail)
  },
  command: {
    name: 'account factors --clear',
    args: { account_id: account },
    phrase: ({ totp, passkeys }, { who }) =>
      totp || passkeys > 0
        ? `${who} now signs in without a second factor: ${totp ? 'TOTP was' : 'no TOTP was'} removed, and ${counted(passkeys, 'passkey')} ${passkeys === 1 ? 'is' : 'are'} no longer a second factor.`
        : `${who} had no second factor.`,
  },
})

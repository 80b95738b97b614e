import { z } from 'zod'
import { lockWithSession } from '../accounts/locks.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { mutation } from '../core/declare.ts'
import { committed } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { notify } from '../delivery/notify.ts'
import { factorAdded } from '../second-factor/factors.ts'
import { strengthen } from '../sessions/sessions.ts'
import { endFlows } from '../sign-in/flow.ts'
import { hasPasskeys, Passkey, PasskeyName, partyOf, passkeyColumns, passkeysMax } from './passkeys.ts'
import { RegistrationResponse, verifyRegistration } from './webauthn.ts'

export const account_passkey_register_finish = mutation({
  doc: 'Finish what `account_passkey_register_begin` began, with the response of the browser. The answer has recovery codes if it is the first second factor.',
  auth: { account: 'required', actor: 'none', credential_types: ['session'] },
  event: 'factor_add',
  before_enrolment: true,
  secret_reply: true,
  rate_limit: 'account',
  rate_limit_group: 'credential',
  enabled: hasPasskeys,
  input: z.strictObject({ response: RegistrationResponse, name: PasskeyName.default('Passkey') }),
  output: z.object({
    ok: z.literal(true),
    passkey: Passkey,
    recovery_codes: z.array(z.string()).nullable(),
  }),
  errors: [
    'account_vanished',
    'authentication_required',
    'flow_expired',
    'passkey_refused',
    'passkey_known',
    'passkey_limit',
  ],
  async handler({ response, name }, { app, account, credential, fail, ...work }) {
    const { db, audit } = work
    const { id: account_id } = await lockWithSession(db, account.id, credential.id)
    const begun = await takeRegistration(db, credential.id)
    if (!begun) throw fail('flow_expired')
    const party = partyOf(app.config)
    const key = await verifyRegistration(party, begun.challenge, response)
    // A challenge is used up by its first answer, right or wrong.
    if (!key) throw committed(fail('passkey_refused'))
    const { is_verified, ...made } = key
    // A device that does not check who uses it proves possession only, which is no more than a second step.
    const second_factor = begun.intent === 'second_factor' || !is_verified
    const { count } = await db.one<{ count: number }>(sql`
      select count(*) from account_passkey where account_id = ${account_id}::uuid and rp_id = ${party.id}`)
    if (count >= passkeysMax) throw committed(fail('passkey_limit'))
    const passkey = await db.first<Passkey>(sql`
      insert into account_passkey (id, account_id, public_key, counter, transports, device, backed_up, aaguid,
        first_factor, second_factor, rp_id, name)
      values (${made.id}, ${account_id}::uuid, ${made.public_key}, ${made.counter}, ${made.transports}::text[],
        ${made.device}, ${made.backed_up}, ${made.aaguid}::uuid, ${is_verified}, ${second_factor}, ${party.id}, ${name})
      on conflict do nothing returning ${passkeyColumns}`)
    if (!passkey) throw committed(fail('passkey_known'))

    const detail = { credential_type: credential.type }
    const factor_id = sha256Hex(made.id)
    audit('factor_add', { factor: 'passkey', factor_id, ...detail }, { target_account_id: account_id })
    if (!second_factor) {
      await endFlows(db, account_id)
      await notify(app, work, account_id, 'passkey_added')
      return { ok: true as const, passkey, recovery_codes: null }
    }
    await db.run(strengthen(credential.id, 'passkey'))
    const recovery_codes = await factorAdded(app, work, account_id, detail, 'passkey_added')
    return { ok: true as const, passkey, recovery_codes }
  },
})

/** Takes the registration that the session has begun. */
const takeRegistration = (db: Queryable, session_id: string | null) =>
  db.first<{ challenge: string; intent: string | null }>(sql`
    delete from sign_in_flow
    where id = ${session_id} and kind = 'passkey_register' and expires_at > statement_timestamp()
    returning challenge, intent`)

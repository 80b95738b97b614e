import { describe, expect, it } from 'vitest'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { codeOf, firstStep, guarded, wrongCode } from '../../test/helpers/totp.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

const test = await serviceForFile()
const db = test.service.app.db
const target = ({ id }: TestAccount) => ({ account_id: id, actor_id: null, target_account_id: id })
const age = ({ id }: TestAccount, by: string) =>
  db.run(sql`update account_totp set created_at = now() - ${by}::interval where account_id = ${id}::uuid`)

describe('adding TOTP', () => {
  it('shows a secret once, and asks for it only when a code confirms it', async () => {
    const ada = await test.account({ username: 'ada_l' })
    const enrolled = await scenario(test, () => ada.client.account_totp_enrol())
    const { secret } = enrolled
    expect(secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(enrolled.uri).toBe(
      `otpauth://totp/Cellkeep:ada_l?secret=${secret}&issuer=Cellkeep&algorithm=SHA1&digits=6&period=30`,
    )
    expect((await firstStep(test, ada)).status).toBe(200)
    const confirmed = await scenario(test, () => ada.client.account_totp_confirm({ code: codeOf(secret) }), {
      audit: [
        { event_type: 'factor_add', ...target(ada) },
        {
          event_type: 'factor_add',
          ...target(ada),
          metadata: { factor: 'recovery_codes', credential_type: 'session' },
        },
      ],
    })
    expect(confirmed.recovery_codes).toHaveLength(10)
    expect((await firstStep(test, ada)).json).toEqual({
      error: 'second_factor_required',
      methods: ['totp', 'recovery_code'],
      expires_in: 300,
    })
  })

  it('makes the session strong', async () => {
    const ada = await guarded(test)
    const { sessions } = await ada.client.account_session_list()
    expect(sessions).toMatchObject([{ strong: true, methods: ['library', 'totp'] }])
  })

  it('again replaces the first, and keeps the recovery codes', async () => {
    const ada = await guarded(test)
    const { secret } = await ada.client.account_totp_enrol()
    const { recovery_codes } = await scenario(
      test,
      () => ada.client.account_totp_confirm({ code: codeOf(secret) }),
      { audit: [{ event_type: 'factor_remove' }, { event_type: 'factor_add' }] },
    )
    expect(recovery_codes).toBeNull()
    expect(await ada.client.account_sign_in_get()).toMatchObject({
      ...{ recovery_codes_left: 10, session: { methods: ['library', 'totp'] } },
    })
  })

  it('takes no wrong code, nor one of a secret that was replaced', async () => {
    const ada = await test.account()
    const first = await ada.client.account_totp_enrol()
    const { secret } = await ada.client.account_totp_enrol()
    for (const code of [wrongCode(secret), codeOf(first.secret), codeOf(secret, -2)])
      expect(await reasonOf(ada.client.account_totp_confirm({ code }))).toBe('invalid_code')
    expect(await reasonOf(ada.client.account_totp_confirm({ code: codeOf(secret) }))).toBe('ok')
  })

  it('ends 15 minutes later, and belongs to the session that began it', async () => {
    const ada = await test.account()
    const other = await test.sessions.create(ada.id)
    expect(await reasonOf(ada.client.account_totp_confirm({ code: '123456' }))).toBe('flow_expired')
    const { secret } = await ada.client.account_totp_enrol()
    const confirm = (by: Pick<TestAccount, 'client'>) =>
      reasonOf(by.client.account_totp_confirm({ code: codeOf(secret) }))
    expect(await confirm(other)).toBe('flow_expired')
    await age(ada, '15 minutes 1 second')
    expect(await confirm(ada)).toBe('flow_expired')
    await age(ada, '14 minutes')
    expect(await confirm(ada)).toBe('ok')
  })

  it('and goes with the cleanup then, no earlier and with no factor that counts', async () => {
    const [late, ada] = [await test.account(), await guarded(test)]
    await late.client.account_totp_enrol()
    await test.service.app.db.run(sql`update account_totp set created_at = now() - interval '15 minutes'`)
    const { secret } = await ada.client.account_totp_enrol()
    await test.service.operations.cleanUp()
    const left = await test.service.app.db.rows(sql`
      select account_id, confirmed_at is null as waits from account_totp
      where account_id = any(${[late.id, ada.id]}::uuid[]) order by created_at`)
    expect(left).toEqual([
      { account_id: ada.id, waits: false },
      { account_id: ada.id, waits: true },
    ])
    await ada.client.account_totp_confirm({ code: codeOf(secret) })
  })

  it('by a weak session needs no fresh proof of a factor that is not there, but of one that is', async () => {
    const ada = await guarded(test)
    const weak = await test.sessions.create(ada.id)
    expect(await reasonOf(weak.client.account_totp_enrol())).toBe('fresh_authentication_required')
    await db.run(sql`update auth_session set authenticated_at = now() - interval '601 seconds'`)
    for (const method of [
      'account_totp_enrol',
      'account_totp_remove',
      'account_recovery_codes_create',
    ] as const)
      expect(await reasonOf(ada.client[method]())).toBe('fresh_authentication_required')
  })

  it('does not exist where it is off or nothing seals the secret; what is stored is still asked for', async () => {
    const ada = await guarded(test)
    for (const options of [{ second_factor: false }, { secret_keys: null }]) {
      if (options.secret_keys === null) await db.run(sql`delete from account_totp`)
      await using node = await testService({ ...options, database_url: test.databaseUrl })
      expect(await reasonOf(node.client(ada.cookie).account_totp_enrol())).toBe('method_not_found')
      expect(await node.client().account.options()).toMatchObject({ second_factor: false })
      if (options.secret_keys !== null)
        expect((await firstStep(node, ada)).json).toMatchObject({ error: 'second_factor_required' })
    }
  })
})

describe('removing TOTP', () => {
  it('takes the recovery codes along, and sign-in is one step again', async () => {
    const ada = await guarded(test)
    expect(
      await scenario(test, () => ada.client.account_totp_remove(), {
        audit: [
          {
            event_type: 'factor_remove',
            ...target(ada),
            metadata: { factor: 'recovery_codes', credential_type: 'session' },
          },
          { event_type: 'factor_remove', ...target(ada) },
        ],
      }),
    ).toEqual({ ok: true, removed: true })
    expect(await scenario(test, () => ada.client.account_totp_remove())).toEqual({ ok: true, removed: false })
    expect((await firstStep(test, ada)).status).toBe(200)
    expect(await reasonOf(ada.client.account_recovery_codes_create())).toBe('second_factor_missing')
  })

  it('is refused while a role requires a second factor, unless a passkey is left as one', async () => {
    await using node = await testService({ require_second_factor: 'admin' })
    const root = await guarded(node, { roles: ['admin'] })
    // A refusal that leaves no trace, not even in the log.
    const refused = () => reasonOf(root.client.account_totp_remove())
    expect(await scenario(node, refused)).toBe('second_factor_policy')
    expect(await root.client.account_sign_in_get()).toMatchObject({
      second_factor: { active: true, required: true },
      recovery_codes_left: 10,
    })
    await node.service.app.db.run(sql`
      insert into account_passkey (id, account_id, public_key, counter, device, backed_up, first_factor, second_factor, rp_id, name)
      values ('key', ${root.id}::uuid, '', 0, 'single', false, false, true, 'localhost', 'key')`)
    expect(await reasonOf(root.client.account_totp_remove())).toBe('ok')
    expect(await root.client.account_sign_in_get()).toMatchObject({ totp: null, recovery_codes_left: 10 })
  })
})

it('where a role requires it, enrolment is reached and opens the rest to the same session', async () => {
  await using node = await testService({ require_second_factor: 'admin' })
  const root = await node.account({ roles: ['admin'] })
  expect(await root.client.account_sign_in_get()).toMatchObject({
    second_factor: { active: false, required: true },
    session: { strong: false },
  })
  const { secret } = await root.client.account_totp_enrol()
  expect(await reasonOf(root.client.admin_account_list())).toBe('second_factor_enrolment_required')
  await root.client.account_totp_confirm({ code: codeOf(secret) })
  expect(await reasonOf(root.client.admin_account_list())).toBe('ok')
})

it('account_sign_in_get shows what there is, and no secret', async () => {
  const ada = await guarded(test)
  const shown = await ada.client.account_sign_in_get()
  const timestamp = expect.stringMatching(/^.{23}Z$/)
  expect(shown).toEqual({
    password: true,
    second_factor: { active: true, required: false },
    totp: { confirmed_at: timestamp, last_used_at: null },
    recovery_codes_left: 10,
    passkeys: [],
    links: [],
    session: {
      methods: ['library', 'totp'],
      authenticated_at: timestamp,
      fresh_until: timestamp,
      strong: true,
    },
  })
  const { authenticated_at, fresh_until } = shown.session as { authenticated_at: string; fresh_until: string }
  expect(Date.parse(fresh_until) - Date.parse(authenticated_at)).toBe(600_000)
  expect(
    (await test.service.call('account_sign_in_get', {}, { headers: { cookie: ada.cookie } })).session,
  ).not.toBeNull()
  const stored = await db.rows(sql`select account_totp::text, account_recovery_code::text
    from account_totp join account_recovery_code using (account_id) where account_id = ${ada.id}::uuid`)
  const text = JSON.stringify([shown, stored, await db.rows(sql`select metadata from audit_entries()`)])
  for (const secret of [
    ada.secret,
    ...ada.recovery_codes,
    ...ada.recovery_codes.map((code) => code.replaceAll('-', '')),
  ])
    expect(text).not.toContain(secret)
})

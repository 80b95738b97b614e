import { beforeEach, describe, expect, it } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import type { Forged } from '../../test/helpers/authenticator.ts'
import { mailIsDown, messagesTo } from '../../test/helpers/mailed.ts'
import { addPasskey, beginPasskey, device, onLocalhost, signInWith } from '../../test/helpers/passkeys.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({
  ...mailIsDown,
  ...onLocalhost,
  limit_login_ip: 'off',
  limit_credential: 'off',
  login_fail_floor_ms: 0,
})
const off = await serviceForFile({ database_url: test.databaseUrl })
const limited = await serviceForFile({
  ...onLocalhost,
  limit_login_ip: '2/900',
  limit_flow_ip: '4/900',
  login_fail_floor_ms: 0,
})
const { app, operations } = test.service
const by = { via: 'cli' }
const run = (text: string) => app.db.run(sql.raw(text))

let ada: TestAccount
beforeEach(async () => {
  await test.reset()
  ada = await test.account({ username: 'ada', email: 'ada@x.io' })
  await operations.verifyEmail({ account_id: ada.id }, by)
})

/** Registers with the device's answer. */
const register = (forged: Forged, traits = {}) => addPasskey(ada, device(traits), forged)
const notices = async () => (await messagesTo(test, ada)).map(({ what }) => what)
const own = (event_type: string, more: object = {}) => ({
  ...{ event_type, account_id: ada.id, target_account_id: ada.id, ...more },
})
const failure = (reason: string, account_id: string | null) => ({
  audit: [{ event_type: 'login', outcome: 'failure' as const, account_id, metadata: { reason } }],
})
const refusedAs = (reason: string) => expect.objectContaining({ reason })

describe('a passkey is registered', () => {
  it('and signs in by itself from then on', async () => {
    const phone = device({ be: true, bs: true })
    const { passkey, recovery_codes } = await scenario(test, () => addPasskey(ada, phone), {
      audit: [own('factor_add')],
    })
    expect(recovery_codes).toBeNull()
    expect(passkey).toMatchObject({
      ...{ name: 'Passkey', device: 'synced', backed_up: true, last_used_at: null },
      ...{ first_factor: true, second_factor: false },
    })
    expect(await notices()).toEqual(['passkey_added'])
    const { status, cookie } = await signInWith(test, phone)
    expect(status).toBe(200)
    const { sessions } = await test.client(cookie).account_session_list()
    expect(sessions.find(({ id }) => id === sessionIn(cookie))).toMatchObject({
      ...{ account_id: ada.id, methods: ['passkey'], strong: true },
    })
  })

  it('as a second factor: with recovery codes, and the session has proven it', async () => {
    const { passkey, recovery_codes } = await addPasskey(ada, device(), { second_factor: true })
    expect(passkey).toMatchObject({ first_factor: true, second_factor: true })
    expect(recovery_codes).toHaveLength(10)
    const { sessions } = await ada.client.account_session_list()
    expect(sessions).toMatchObject([{ strong: true }])
    expect((await addPasskey(ada, device(), { second_factor: true })).recovery_codes).toBeNull()
  })

  it('as no more than a second factor if its device does not check who uses it', async () => {
    const { passkey } = await addPasskey(ada, device({ uv: false }))
    expect(passkey).toMatchObject({ first_factor: false, second_factor: true })
  })

  it('even after an earlier attempt was given up, whose challenge is dead', async () => {
    const phone = device()
    const begin = async () => (await ada.client.account_passkey_register_begin({})).options as never
    const finish = (options: never) =>
      ada.client.account_passkey_register_finish({ response: phone.create(options) })
    const abandoned = await begin()
    await begin()
    await expect(finish(abandoned)).rejects.toEqual(refusedAs('passkey_refused'))
    await begin()
    await run(`update sign_in_flow set expires_at = date_trunc('milliseconds', now())`)
    expect((await finish(await begin())).passkey).toMatchObject({ name: 'Passkey' })
  })

  it('for the purpose that was begun last', async () => {
    const phone = device()
    await ada.client.account_passkey_register_begin({})
    expect((await addPasskey(ada, phone, { second_factor: true })).passkey.second_factor).toBe(true)
    await ada.client.account_passkey_register_begin({ second_factor: true })
    expect((await addPasskey(ada, device())).passkey.second_factor).toBe(false)
  })

  it('under a name of 1 to 60 characters', async () => {
    const { passkey } = await addPasskey(ada, device())
    const rename = (name: string, { client } = ada) =>
      client.account_passkey_rename({ passkey_id: passkey.id, name })
    expect(await rename(`  ${'🔑'.repeat(60)} `)).toEqual({ ok: true, renamed: true })
    for (const name of ['🔑'.repeat(61), ' ', 'a\u0007b'])
      await expect(rename(name)).rejects.toEqual(refusedAs('invalid_params'))
    expect(await rename('mine', await test.account())).toEqual({ ok: true, renamed: false })
  })
})

describe('a registration is refused', () => {
  const forgeries: [string, Forged][] = [
    ['another challenge', { challenge: 'A'.repeat(43) }],
    ['another origin', { origin: 'http://localhost:4041' }],
    ['another RP id', { rpId: 'localhost.evil.example' }],
    ['another type', { type: 'webauthn.get' }],
    ['nobody present', { up: false }],
    ['a frame of another site', { crossOrigin: true }],
  ]
  it.each(forgeries)('with %s; its challenge is used up', async (_what, forged) => {
    const phone = device()
    const { options } = await ada.client.account_passkey_register_begin({})
    const finish = (more: Forged) =>
      ada.client.account_passkey_register_finish({ response: phone.create(options as never, more) })
    await scenario(test, () => finish(forged), { reason: 'passkey_refused' })
    await scenario(test, () => finish({}), { reason: 'flow_expired' })
  })

  it('of an algorithm that was not asked for', async () => {
    await expect(register({}, { alg: -35 })).rejects.toEqual(refusedAs('passkey_refused'))
  })

  it('in another session of the account, without a begin, and after five minutes', async () => {
    const phone = device()
    const { options } = await ada.client.account_passkey_register_begin({})
    const response = phone.create(options as never)
    const other = await test.sessions.create(ada.id)
    await expect(other.client.account_passkey_register_finish({ response })).rejects.toEqual(
      refusedAs('flow_expired'),
    )
    await run(`update sign_in_flow set expires_at = date_trunc('milliseconds', now())`)
    await expect(ada.client.account_passkey_register_finish({ response })).rejects.toEqual(
      refusedAs('flow_expired'),
    )
  })

  it('of a key that an account has, of whichever', async () => {
    const { passkey } = await addPasskey(ada, device())
    const bob = await test.account()
    for (const account of [ada, bob])
      await expect(addPasskey(account, device(), { id: passkey.id })).rejects.toEqual(
        refusedAs('passkey_known'),
      )
  })

  it('beyond 20 keys', async () => {
    const { passkey } = await addPasskey(ada, device())
    const copies = (from: number, to: number) =>
      run(`insert into account_passkey select (jsonb_populate_record(p, jsonb_build_object('id', n::text))).*
        from account_passkey p, generate_series(${from}, ${to}) n where p.id = '${passkey.id}'`)
    await copies(1, 18)
    const begun = await ada.client.account_passkey_register_begin({})
    await copies(19, 19)
    await expect(ada.client.account_passkey_register_begin({})).rejects.toEqual(refusedAs('passkey_limit'))
    const response = device().create(begun.options as never)
    await expect(ada.client.account_passkey_register_finish({ response })).rejects.toEqual(
      refusedAs('passkey_limit'),
    )
    await ada.client.account_passkey_remove({ passkey_id: passkey.id })
    await addPasskey(ada, device())
    await run(`update account_passkey set rp_id = 'old.example'`)
    await addPasskey(ada, device())
  })

  it('to a session that is not fresh', async () => {
    await run(`update auth_session set authenticated_at = now() - interval '601 seconds'`)
    await expect(ada.client.account_passkey_register_begin({})).rejects.toMatchObject({
      reason: 'fresh_authentication_required',
      data: { max_age: 600, methods: ['password'] },
    })
    await run(`update auth_session set authenticated_at = now() - interval '590 seconds'`)
    await ada.client.account_passkey_register_begin({})
  })
})

describe('POST /passkey_finish', () => {
  const forgeries: [string, Forged][] = [
    ['another challenge', { challenge: 'A'.repeat(43) }],
    ['another origin', { origin: 'http://localhost:4041' }],
    ['another RP id', { rpId: 'localhost.evil.example' }],
    ['another type', { type: 'webauthn.create' }],
    ['nobody present', { up: false }],
    ['no check of who uses the device', { uv: false }],
    ['a frame of another site', { crossOrigin: true }],
    ['a key that is synced of a sudden', { be: true }],
    ['an unknown key', { id: 'unknown' }],
    ['the user handle of another account', { userHandle: Buffer.from('bob').toString('base64url') }],
    ['no user handle', { userHandle: '' }],
  ]
  it.each(forgeries)('answers a miss alike: %s', async (_what, forged) => {
    const phone = device()
    await addPasskey(ada, phone)
    const wrong = await send(test, 'POST /login', { body: { username: 'ada', password: 'wrong' } })
    const reply = await signInWith(test, phone, forged)
    expect(reply.status).toBe(401)
    expect(reply.bare).toBe(wrong.bare)
    expect((await signInWith(test, phone)).status).toBe(200)
  })

  it('answers a deleted account, and a key that only a second step takes, like a miss', async () => {
    const [phone, stick] = [device(), device({ uv: false })]
    await addPasskey(ada, stick)
    expect((await signInWith(test, stick)).status).toBe(401)
    expect((await signInWith(test, stick, { uv: true })).status).toBe(401)
    await addPasskey(ada, phone)
    await operations.deleteAccount({ account_id: ada.id }, by)
    await scenario(test, () => signInWith(test, phone), failure('invalid_credentials', null))
    await operations.undeleteAccount({ account_id: ada.id }, by)
    expect((await signInWith(test, phone)).status).toBe(200)
  })

  it('ends the session of another account that the browser had', async () => {
    const [bob, phone] = [await test.account(), device()]
    await addPasskey(ada, phone)
    const { options, cookie } = await beginPasskey(test, bob.cookie)
    const body = { response: phone.get(options) }
    expect((await send(test, 'POST /passkey_finish', { body, cookie })).status).toBe(200)
    expect((await send(test, 'GET /status', { cookie: bob.cookie })).status).toBe(401)
  })

  it('takes each challenge once, in the browser that began, for five minutes', async () => {
    const phone = device()
    await addPasskey(ada, phone)
    const finish = (body: object, cookie?: string) => send(test, 'POST /passkey_finish', { body, cookie })
    const { options, cookie } = await beginPasskey(test)
    const other = await beginPasskey(test)
    const response = phone.get(options)
    const expired = await finish({ response })
    expect([expired.status, expired.json]).toEqual([409, { error: 'flow_expired' }])
    expect((await finish({ response }, other.cookie)).status).toBe(401)
    const both = await Promise.all([finish({ response }, cookie), finish({ response }, cookie)])
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect((await finish({ response }, cookie)).bare).toBe(expired.bare)
    const late = await beginPasskey(test)
    await run(`update sign_in_flow set expires_at = date_trunc('milliseconds', now())`)
    expect((await finish({ response: phone.get(late.options) }, late.cookie)).bare).toBe(expired.bare)
  })

  it('refuses what is cut, large or no response at all', async () => {
    const phone = device()
    await addPasskey(ada, phone)
    const { options, cookie } = await beginPasskey(test)
    const whole = phone.get(options)
    const finish = async (response: unknown) =>
      (await send(test, 'POST /passkey_finish', { body: { response }, cookie })).status
    for (const response of [
      null,
      {},
      [],
      'x',
      { ...whole, id: '=' },
      { ...whole, extra: 'x'.repeat(65_536) },
    ])
      expect(await finish(response)).toBe(400)
    const cut = { ...whole.response, authenticatorData: whole.response.authenticatorData.slice(0, 40) }
    expect(await finish({ ...whole, response: cut })).toBe(401)
  })

  it('is charged to the address for misses, and each begin to its own limiter', async () => {
    const phone = device()
    await addPasskey(await limited.account(), phone)
    expect((await signInWith(limited, phone)).status).toBe(200)
    for (let n = 0; n < 2; n++) expect((await signInWith(limited, phone, { uv: false })).status).toBe(401)
    expect((await signInWith(limited, phone)).status).toBe(429)
    const begun = await send(limited, 'POST /passkey_begin', { body: {} })
    expect([begun.status, begun.json?.error]).toEqual([429, 'rate_limit_exceeded'])
  })
})

describe('a counter', () => {
  it('that does not rise is refused, and its owner is told', async () => {
    const phone = device()
    await addPasskey(ada, phone)
    await signInWith(test, phone, { counter: 7 })
    for (const counter of [7, 6, 0])
      await scenario(test, () => signInWith(test, phone, { counter }), failure('passkey_counter', ada.id))
    expect(await notices()).toEqual(['passkey_added', ...Array(3).fill('passkey_counter')])
    expect((await signInWith(test, phone, { counter: 8 })).status).toBe(200)
    expect((await signInWith(test, phone, { counter: 2 ** 32 - 1 })).status).toBe(200)
  })

  it('of a copy tells nothing without its signature', async () => {
    const [phone, other] = [device(), device()]
    const { passkey } = await addPasskey(ada, phone)
    await addPasskey(ada, other)
    const forged = { id: passkey.id, counter: 0 }
    await scenario(test, () => signInWith(test, other, forged), failure('invalid_credentials', null))
  })

  it('that stays at zero is not asked about', async () => {
    const phone = device({ counts: false })
    await addPasskey(ada, phone)
    for (let n = 0; n < 3; n++) expect((await signInWith(test, phone)).status).toBe(200)
  })

  it('is used once by two at once', async () => {
    const phone = device()
    await addPasskey(ada, phone)
    const both = [signInWith(test, phone, { counter: 9 }), signInWith(test, phone, { counter: 9 })]
    expect((await Promise.all(both)).map(({ status }) => status).toSorted()).toEqual([200, 401])
  })
})

describe('account_passkey_remove', () => {
  const remove = (passkey_id: string, { client } = ada) => client.account_passkey_remove({ passkey_id })

  it('removes an own passkey, and no other', async () => {
    const phone = device()
    const { passkey } = await addPasskey(ada, phone)
    expect(await scenario(test, async () => remove(passkey.id, bob))).toEqual({ ok: true, removed: false })
    const row = own('factor_remove', {
      metadata: { factor: 'passkey', factor_id: sha256Hex(passkey.id), credential_type: 'session' },
    })
    expect(await scenario(test, () => remove(passkey.id), { audit: [row] })).toEqual({
      ok: true,
      removed: true,
    })
    expect(await scenario(test, () => remove(passkey.id))).toEqual({ ok: true, removed: false })
    expect((await signInWith(test, phone)).status).toBe(401)
    expect(await notices()).toEqual(['passkey_added', 'passkey_removed'])
  })
  let bob: TestAccount
  beforeEach(async () => {
    bob = await test.account()
  })

  it('ends begun sign-ins, as adding one does', async () => {
    const flows = () => app.db.rows(sql`select from sign_in_flow where account_id = ${ada.id}::uuid`)
    await beginPasskey(test, ada.cookie)
    const { passkey } = await addPasskey(ada, device())
    expect(await flows()).toEqual([])
    await beginPasskey(test, ada.cookie)
    await remove(passkey.id)
    expect(await flows()).toEqual([])
  })

  it('takes the recovery codes along with the last second factor', async () => {
    const { passkey } = await addPasskey(ada, device(), { second_factor: true })
    await scenario(test, () => remove(passkey.id), {
      audit: [own('factor_remove'), own('factor_remove')],
    })
    expect(await app.db.rows(sql`select from account_recovery_code`)).toEqual([])
  })

  it('leaves the last way in, also of two that are removed at once', async () => {
    const keys = [await addPasskey(ada, device()), await addPasskey(ada, device())]
    await run(`update account set password_hash = '*' where username = 'ada'`)
    const outcomes = await Promise.all(
      keys.map(({ passkey }) => remove(passkey.id).then(String, ({ reason }) => reason)),
    )
    expect(outcomes.toSorted()).toEqual(['[object Object]', 'last_sign_in_method'])
  })

  it('removes one of another domain, which is no way in', async () => {
    const { passkey } = await addPasskey(ada, device())
    await run(`update account set password_hash = '*' where username = 'ada'`)
    await run(`update account_passkey set rp_id = 'old.example'`)
    expect(await remove(passkey.id)).toEqual({ ok: true, removed: true })
  })
})

describe('POST /reauthenticate', () => {
  const again = async (authenticator: ReturnType<typeof device>, forged?: Forged) => {
    const begun = await beginPasskey(test, ada.cookie)
    const body = { passkey: authenticator.get(begun.options, forged) }
    return await send(test, 'POST /reauthenticate', { body, cookie: begun.cookie })
  }
  const isLive = async (cookie: string) => (await send(test, 'GET /status', { cookie })).status === 200

  it('by a passkey opens a fresh session in place of the presented one', async () => {
    const phone = device()
    await addPasskey(ada, phone)
    await run(`update auth_session set authenticated_at = now() - interval '1 hour'`)
    const { status, cookie } = await again(phone)
    expect(status).toBe(200)
    expect(await isLive(ada.cookie)).toBe(false)
    await addPasskey({ client: test.client(cookie) }, device())
  })

  it('by another account’s passkey ends nothing and opens nothing', async () => {
    const [bob, phone] = [await test.account(), device()]
    await addPasskey(bob, phone)
    const { status, json } = await again(phone)
    expect([status, json]).toEqual([401, { error: 'invalid_credentials' }])
    expect([await isLive(ada.cookie), await isLive(bob.cookie)]).toEqual([true, true])
  })

  it('by a device that has not checked who uses it opens nothing', async () => {
    const phone = device()
    await addPasskey(ada, phone)
    expect((await again(phone, { uv: false })).json).toEqual({ error: 'invalid_credentials' })
    expect((await again(phone)).status).toBe(200)
  })

  it('takes only a challenge that this session has begun', async () => {
    const phone = device()
    await addPasskey(ada, phone)
    const anonymous = await beginPasskey(test)
    const other = await beginPasskey(test, (await test.sessions.create(ada.id)).cookie)
    for (const { options, cookie } of [anonymous, other]) {
      const flow = /svc_flow=[^;]+/.exec(cookie)?.[0]
      const body = { passkey: phone.get(options) }
      const reply = await send(test, 'POST /reauthenticate', { body, cookie: `${ada.cookie}; ${flow}` })
      expect([reply.status, reply.json]).toEqual([409, { error: 'flow_expired' }])
    }
  })
})

it('without a public URL that fits none of this exists', async () => {
  const { client } = await off.sessions.create(ada.id)
  await expect(client.account_passkey_register_begin({})).rejects.toEqual(refusedAs('method_not_found'))
  for (const route of ['POST /passkey_begin', 'POST /passkey_finish'])
    expect((await send(off, route, { body: {} })).status).toBe(404)
  const options = async (on: typeof test) => (await send(on, 'GET /options')).json?.passkeys
  expect([await options(off), await options(test)]).toEqual([false, true])
})

import { beforeEach, expect, it } from 'vitest'
import { type Reply, send, sessionIn } from '../../test/helpers/account-routes.ts'
import type { Forged } from '../../test/helpers/authenticator.ts'
import { addPasskey, device, onLocalhost } from '../../test/helpers/passkeys.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({
  ...onLocalhost,
  login_fail_floor_ms: 0,
  require_second_factor: ['admin'],
})
const off = await serviceForFile({ database_url: test.databaseUrl })

let ada: TestAccount
beforeEach(async () => {
  await test.reset()
  ada = await test.account({ username: 'ada' })
})

const login = ({ username, password } = ada, on = test) =>
  send(on, 'POST /login', { body: { username, password } })
const second = ({ cookie }: Reply, body: object) => send(test, 'POST /second_factor', { body, cookie })
/** Answers the options of the first step with a passkey. */
const prove = (first: Reply, authenticator: ReturnType<typeof device>, forged?: Forged) =>
  second(first, { passkey: authenticator.get(first.json?.passkey_options as never, forged) })
const optionsOf = ({ json }: Reply) => json?.passkey_options as { challenge: string }
const answer = ({ status, json }: Reply) => [status, json]
const wrong = [401, { error: 'invalid_second_factor' }]

it('the first step names the keys of the account, and a key without a check of its user will do', async () => {
  const stick = device({ uv: false })
  const { passkey } = await addPasskey(ada, stick, { second_factor: true })
  await addPasskey(ada, device())
  const first = await login()
  expect([first.status, first.json]).toEqual([
    401,
    {
      error: 'second_factor_required',
      methods: ['passkey', 'recovery_code'],
      expires_in: 300,
      passkey_options: expect.objectContaining({
        rpId: 'localhost',
        userVerification: 'preferred',
        allowCredentials: [{ id: passkey.id, transports: ['internal'], type: 'public-key' }],
      }),
    },
  ])
  const reply = await scenario(test, () => prove(first, stick), {
    audit: [{ event_type: 'second_factor' }, { event_type: 'login' }],
  })
  expect(reply.status).toBe(200)
  const { sessions } = await test.client(reply.cookie).account_session_list()
  expect(sessions.find(({ id }) => id === sessionIn(reply.cookie))).toMatchObject({
    ...{ methods: ['password', 'passkey'], strong: true },
  })
})

it('a miss counts against the flow, whatever is wrong', async () => {
  const [stick, phone, stranger] = [device(), device(), device()]
  const { recovery_codes } = await addPasskey(ada, stick, { second_factor: true })
  await addPasskey(ada, phone)
  await addPasskey(await test.account(), stranger, { second_factor: true })
  const first = await login()
  const { challenge } = optionsOf(first)
  const other = optionsOf(await login())
  for (const [authenticator, forged] of [
    [stick, { up: false }],
    [stick, { challenge: other.challenge }],
    [phone, {}],
    [stranger, {}],
  ] as const) {
    const response = authenticator.get({ challenge }, forged)
    expect(answer(await second(first, { passkey: response }))).toEqual(wrong)
  }
  expect(answer(await prove(first, stick, { be: true }))).toEqual(wrong)
  const late = await prove(first, stick)
  expect(answer(late)).toEqual([409, { error: 'flow_expired' }])
  const again = await second(await login(), { recovery_code: recovery_codes?.[0] })
  expect(again.status).toBe(200)
})

it('a counter that has not risen is refused, and a response is used once', async () => {
  const stick = device()
  await addPasskey(ada, stick, { second_factor: true })
  const first = await login()
  const passkey = stick.get(first.json?.passkey_options as never, { counter: 5 })
  const both = await Promise.all([second(first, { passkey }), second(first, { passkey })])
  expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409])
  expect(answer(await prove(await login(), stick, { counter: 5 }))).toEqual(wrong)
  expect((await prove(await login(), stick, { counter: 6 })).status).toBe(200)
})

it('with passkeys off, a key is still asked for, and recovery codes stand in for it', async () => {
  const { recovery_codes } = await addPasskey(ada, device(), { second_factor: true })
  const first = await login(ada, off)
  expect(first.json).toEqual({
    error: 'second_factor_required',
    methods: ['recovery_code'],
    expires_in: 300,
  })
  expect((await second(first, { recovery_code: recovery_codes?.[0] })).status).toBe(200)
})

it('a key of another domain is not offered, and recovery codes stand in for it', async () => {
  await addPasskey(ada, device(), { second_factor: true })
  await test.service.app.db.run(sql`update account_passkey set rp_id = 'old.example'`)
  expect((await login()).json).toEqual({
    error: 'second_factor_required',
    methods: ['recovery_code'],
    expires_in: 300,
  })
})

it('an admin who must have a second factor keeps the last one', async () => {
  const admin = await test.account({ roles: ['admin'] })
  const add = () => addPasskey(admin, device(), { second_factor: true })
  await scenario(test, () => admin.client.admin_account_list({}), {
    reason: 'second_factor_enrolment_required',
  })
  const keys = [await add(), await add()].map(({ passkey }) => passkey.id)
  await admin.client.admin_account_list({})
  const remove = (passkey_id = '') => admin.client.account_passkey_remove({ passkey_id })
  expect(await remove(keys[0])).toEqual({ ok: true, removed: true })
  await scenario(test, () => remove(keys[1]), { reason: 'second_factor_policy' })
  const { passkeys, second_factor } = await admin.client.account_sign_in_get()
  expect([passkeys.map(({ id }) => id), second_factor]).toEqual([[keys[1]], { active: true, required: true }])
})

it('a passkey that signs in by itself is asked for nothing more', async () => {
  const phone = device()
  await addPasskey(ada, phone, { second_factor: true })
  const { json, cookie } = await send(test, 'POST /passkey_begin', { body: {} })
  const response = phone.get(json?.options as never)
  expect((await send(test, 'POST /passkey_finish', { body: { response }, cookie })).status).toBe(200)
  expect(await test.service.app.db.rows(sql`select from sign_in_flow`)).toEqual([])
})

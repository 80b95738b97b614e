import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { clearedCookie, freshIp, type Reply, send, sessionIn } from '../../test/helpers/account-routes.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { mailIsDown, messagesTo } from '../../test/helpers/mailed.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { codeOf, firstStep, type Guarded, guarded, secondStep, wrongCode } from '../../test/helpers/totp.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'

const test = await serviceForFile({ trusted_proxies: ['127.0.0.1'], limit_login_ip: 'off' })
const db = test.service.app.db
const expired = [409, { error: 'flow_expired' }]
const wrong = [401, { error: 'invalid_second_factor' }]
const answer = ({ status, json }: Reply) => [status, json]
const statuses = (replies: Reply[]) => replies.map(({ status }) => status).sort()
const begin = async (ada: Guarded) => (await firstStep(test, ada)).cookie as string
const isLive = async (cookie: string | undefined) =>
  (await send(test, 'GET /verify', { cookie })).status === 200

describe('the second step', () => {
  it('opens a strong session and clears the flow', async () => {
    const ada = await guarded(test)
    const flow = await begin(ada)
    const replies: Reply[] = []
    const envelope = { account_id: ada.id, actor_id: null, target_account_id: null, ip: '127.0.0.1' }
    await scenario(
      test,
      async () => void replies.push(await secondStep(test, flow, { totp: codeOf(ada.secret) })),
      {
        audit: [
          { event_type: 'second_factor', ...envelope, metadata: null },
          { event_type: 'login', ...envelope },
        ],
      },
    )
    const [reply] = replies as [Reply]
    expect(answer(reply)).toEqual([200, { ok: true }])
    const [session, cleared, ...more] = reply.headers['set-cookie'] ?? []
    expect(session).toMatch(/^svc_session=[\w.-]+; Max-Age=2592000; /)
    expect(cleared).toBe(clearedCookie.replace('svc_session', 'svc_flow'))
    expect(more).toEqual([])
    const { sessions } = await test.client(reply.cookie).account_session_list()
    expect(sessions.find(({ id }) => id === sessionIn(reply.cookie))).toMatchObject({
      strong: true,
      methods: ['password', 'totp'],
    })
  })

  it('judges a code by the clock of the database, whatever the clock of this process', async () => {
    const clocks = [Date, performance].map((one) => ({ now: one.now.bind(one), spy: vi.spyOn(one, 'now') }))
    onTestFinished(() => clocks.forEach(({ spy }) => void spy.mockRestore()))
    await using own = await testService()
    const ada = await guarded(own)
    const flow = (await firstStep(own, ada)).cookie
    const totp = codeOf(ada.secret, 0, own.service.app.db.clock.now())
    for (const { now, spy } of clocks) spy.mockImplementation(() => now() + 3_600_000)
    expect(answer(await secondStep(own, flow, { totp }))).toEqual([200, { ok: true }])
  })

  it('ends the session that the browser had, of this account or another', async () => {
    const [ada, bob] = [await guarded(test), await test.account()]
    for (const old of [ada.cookie, bob.cookie]) {
      await db.run(sql`update account_totp set last_step = 0`)
      const flow = await begin(ada)
      const reply = await secondStep(test, `${old}; ${flow}`, { totp: codeOf(ada.secret) })
      expect([reply.status, await isLive(old), await isLive(reply.cookie)]).toEqual([200, false, true])
    }
  })

  it('takes no code twice, nor the one that confirmed', async () => {
    const ada = await guarded(test)
    const [first, second] = [await begin(ada), await begin(ada)]
    expect(answer(await secondStep(test, first, { totp: codeOf(ada.secret, -1) }))).toEqual(wrong)
    const code = codeOf(ada.secret)
    expect((await secondStep(test, first, { totp: code })).status).toBe(200)
    expect(answer(await secondStep(test, second, { totp: code }))).toEqual(wrong)
  })

  it('of a secret that no key opens takes recovery codes only', async () => {
    const ada = await guarded(test)
    await db.run(sql`update account_totp set secret_sealed = 'v1.00000000.' || substr(secret_sealed, 13)
      where account_id = ${ada.id}::uuid`)
    const flow = await begin(ada)
    expect(answer(await secondStep(test, flow, { totp: codeOf(ada.secret) }))).toEqual(wrong)
    expect((await secondStep(test, flow, { recovery_code: ada.recovery_codes[0] as string })).status).toBe(
      200,
    )
  })

  it('of a secret copied from another account is wrong', async () => {
    const [ada, eve] = [await guarded(test), await guarded(test)]
    await db.run(sql`update account_totp set secret_sealed =
      (select secret_sealed from account_totp where account_id = ${eve.id}::uuid) where account_id = ${ada.id}::uuid`)
    expect(answer(await secondStep(test, await begin(ada), { totp: codeOf(eve.secret) }))).toEqual(wrong)
  })

  it('of a secret that waits for its first code is wrong', async () => {
    const ada = await guarded(test)
    await db.run(sql`
      with gone as (delete from account_totp where account_id = ${ada.id}::uuid)
      insert into account_passkey (id, account_id, public_key, counter, device, backed_up, first_factor, second_factor, rp_id, name)
      values ('waits', ${ada.id}::uuid, '', 0, 'single', false, false, true, 'localhost', 'key')`)
    const { secret } = await ada.client.account_totp_enrol()
    expect(answer(await secondStep(test, await begin(ada), { totp: codeOf(secret) }))).toEqual(wrong)
  })

  it('needs exactly one proof, of the right form', async () => {
    const ada = await guarded(test)
    const flow = await begin(ada)
    const both = { totp: '123456', recovery_code: ada.recovery_codes[0] as string }
    for (const body of [{}, both, { totp: '12345' }, { totp: 'abcdef' }, { recovery_code: 'U'.repeat(24) }])
      expect((await secondStep(test, flow, body)).status).toBe(400)
    expect((await secondStep(test, flow, {})).json).toMatchObject({
      issues: [{ message: 'Give exactly one: totp, recovery_code or passkey.' }],
    })
    const [row] = await db.rows(sql`select attempts from sign_in_flow where account_id = ${ada.id}::uuid`)
    expect(row).toEqual({ attempts: 0 })
  })
})

describe('a recovery code', () => {
  it('works as people copy it, once', async () => {
    const ada = await guarded(test)
    const code = ada.recovery_codes[3] as string
    const typed = ` ${code.toLowerCase().replaceAll('0', 'o').replaceAll('1', 'l').replaceAll('-', ' ')}`
    const { cookie } = await secondStep(test, await begin(ada), { recovery_code: typed })
    const { session, recovery_codes_left } = await test.client(cookie).account_sign_in_get()
    expect(session).toMatchObject({ methods: ['password', 'recovery_code'], strong: true })
    expect(recovery_codes_left).toBe(9)
    expect(answer(await secondStep(test, await begin(ada), { recovery_code: code }))).toEqual(wrong)
  })

  it('of another account is wrong, and stays', async () => {
    const [ada, eve] = [await guarded(test), await guarded(test)]
    const recovery_code = eve.recovery_codes[0] as string
    expect(answer(await secondStep(test, await begin(ada), { recovery_code }))).toEqual(wrong)
    expect(await eve.client.account_sign_in_get()).toMatchObject({ recovery_codes_left: 10 })
  })

  it('of a set that was replaced is dead', async () => {
    const ada = await guarded(test)
    const { recovery_codes } = await ada.client.account_recovery_codes_create()
    expect(recovery_codes).toHaveLength(10)
    const flow = await begin(ada)
    expect(answer(await secondStep(test, flow, { recovery_code: ada.recovery_codes[0] as string }))).toEqual(
      wrong,
    )
    expect((await secondStep(test, flow, { recovery_code: recovery_codes[0] as string })).status).toBe(200)
  })
})

it('the owner is told of every change of the factors, and of a recovery code that was used', async () => {
  await using node = await testService(mailIsDown)
  const ada = await node.account({ email: 'ada@x.io' })
  await node.service.app.db.run(sql`update account set email_verified = true`)
  const { secret } = await ada.client.account_totp_enrol()
  const { recovery_codes } = await ada.client.account_totp_confirm({ code: codeOf(secret) })
  await secondStep(node, (await firstStep(node, ada)).cookie, {
    recovery_code: recovery_codes?.[0] as string,
  })
  await ada.client.account_recovery_codes_create()
  await ada.client.account_totp_remove()
  expect((await messagesTo(node, ada)).map(({ what }) => what)).toEqual([
    ...['second_factor_added', 'recovery_code_used'],
    ...['recovery_codes_replaced', 'second_factor_removed'],
  ])
})

describe('a flow', () => {
  it('that is foreign, used, of another kind or over is one answer', async () => {
    const ada = await guarded(test)
    const [used, other, over] = [await begin(ada), await begin(ada), await begin(ada)]
    await secondStep(test, used, { totp: codeOf(ada.secret) })
    await db.run(sql`update sign_in_flow set kind = 'passkey' where account_id = ${ada.id}::uuid
      and id = encode(sha256(${other.slice('svc_flow='.length)}::bytea), 'hex')`)
    await db.run(sql`update sign_in_flow set expires_at = date_trunc('milliseconds', now())
      where account_id = ${ada.id}::uuid and kind = 'second_factor'`)
    const changed = over.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
    const bodies = new Set<string>()
    for (const cookie of [undefined, 'svc_flow=short', used, other, over, changed]) {
      const reply = await secondStep(test, cookie, { recovery_code: ada.recovery_codes[1] as string })
      expect([cookie, ...answer(reply)]).toEqual([cookie, ...expired])
      bodies.add(reply.bare)
    }
    expect(bodies.size).toBe(1)
  })

  it('ends with a change of the password and with one of the factors', async () => {
    const ada = await guarded(test)
    for (const change of [
      () => ada.client.account_recovery_codes_create(),
      () =>
        ada.client
          .account_totp_enrol()
          .then(({ secret }) => ada.client.account_totp_confirm({ code: codeOf(secret) })),
      () => ada.client.account_totp_remove(),
    ]) {
      const flow = await begin(ada)
      await change()
      expect(
        answer(await secondStep(test, flow, { recovery_code: ada.recovery_codes[0] as string })),
      ).toEqual(expired)
    }
  })

  it('allows five wrong proofs, however many come at once', async () => {
    const ada = await guarded(test)
    const flow = await begin(ada)
    const totp = wrongCode(ada.secret)
    const replies = await Promise.all(Array.from({ length: 20 }, () => secondStep(test, flow, { totp })))
    // The fifth ends the flow, so some of the first four may find none if they are judged later.
    const refused = statuses(replies).filter((status) => status === 401)
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.length).toBeLessThanOrEqual(5)
    expect(statuses(replies).slice(refused.length)).toEqual(Array(20 - refused.length).fill(409))
    expect(answer(await secondStep(test, flow, { totp: codeOf(ada.secret) }))).toEqual(expired)
    expect(await db.rows(sql`select from sign_in_flow where account_id = ${ada.id}::uuid`)).toEqual([])
  })

  it('whose attempts never ended takes no more', async () => {
    const ada = await guarded(test)
    const flow = await begin(ada)
    await db.run(sql`update sign_in_flow set attempts = 5 where account_id = ${ada.id}::uuid`)
    expect(answer(await secondStep(test, flow, { totp: codeOf(ada.secret) }))).toEqual(expired)
  })
})

it('only a completed second step starts the budget of wrong passwords over', async () => {
  const ada = await guarded(test)
  const login = (password: string) =>
    send(test, 'POST /login', { ip: freshIp(), body: { username: ada.username, password } })
  const wrongOnes = async (count: number) => {
    for (let n = 0; n < count; n++) expect((await login('wrong')).status).toBe(401)
  }
  await wrongOnes(9)
  const { cookie } = await login(ada.password)
  const right = await send(test, 'POST /second_factor', {
    ...{ cookie, ip: freshIp(), body: { totp: codeOf(ada.secret) } },
  })
  expect(right.status).toBe(200)
  await wrongOnes(10)
  expect((await login('wrong')).status).toBe(429)
})

describe('wrong second factors', () => {
  it('leave a row each', async () => {
    const ada = await guarded(test)
    const flow = await begin(ada)
    await scenario(test, () => secondStep(test, flow, { totp: wrongCode(ada.secret) }), {
      audit: [
        {
          event_type: 'second_factor',
          outcome: 'failure',
          account_id: ada.id,
          target_account_id: null,
          metadata: { reason: 'invalid_second_factor', method: 'totp' },
        },
      ],
    })
  })

  it('are ten per account, from wherever; a success starts anew', async () => {
    const ada = await guarded(test)
    const guess = async (body: Parameters<typeof secondStep>[2]) =>
      (await send(test, 'POST /second_factor', { cookie: await begin(ada), ip: freshIp(), body })).status
    const totp = wrongCode(ada.secret)
    for (let n = 0; n < 9; n++) expect(await guess({ totp })).toBe(401)
    expect(await guess({ recovery_code: ada.recovery_codes[0] as string })).toBe(200)
    for (let n = 0; n < 10; n++) expect(await guess({ totp })).toBe(401)
    expect(await guess({ totp })).toBe(429)
    expect(await guess({ recovery_code: ada.recovery_codes[1] as string })).toBe(429)
  })

  it('are reported to the owner from the fifth on, in whichever flows and at once or not; once in a while', async () => {
    for (const options of [{}, { limit_store: 'postgres' }] as const) {
      await using node = await testService({ ...mailIsDown, ...options })
      const reports = async (ada: Guarded) =>
        (await messagesTo(node, ada)).filter(({ what }) => what === 'second_factor_attempts').length
      const guess = async (ada: Guarded) =>
        await secondStep(node, (await firstStep(node, ada)).cookie, { totp: wrongCode(ada.secret) })
      const withEmail = (name: string) => guarded(node, { email: `${name}@x.io` })
      const [ada, eve, bob] = [await withEmail('ada'), await withEmail('eve'), await withEmail('bob')]
      await node.service.app.db.run(sql`update account set email_verified = true`)
      for (let n = 0; n < 4; n++) await guess(ada)
      expect(await reports(ada)).toBe(0)
      for (let n = 0; n < 5; n++) await guess(ada)
      expect(await reports(ada)).toBe(1)
      const flows = [await firstStep(node, eve), await firstStep(node, eve), await firstStep(node, eve)]
      const totp = wrongCode(eve.secret)
      await Promise.all([...flows, ...flows].map(({ cookie }) => secondStep(node, cookie, { totp })))
      expect(await reports(eve)).toBe(1)
      const [{ cookie }, code] = [await firstStep(node, bob), wrongCode(bob.secret)]
      await Promise.all(Array.from({ length: 5 }, () => secondStep(node, cookie, { totp: code })))
      expect(await reports(bob)).toBe(1)
    }
  })

  it('and only the whole sign-in clears the wrong passwords', async () => {
    await using node = await testService({ limit_login_account: '2/1800' })
    const ada = await guarded(node)
    const tryLogin = (password: string) =>
      send(node, 'POST /login', { body: { username: ada.username, password } })
    expect((await tryLogin('wrong')).status).toBe(401)
    const { cookie } = await tryLogin(ada.password)
    expect((await secondStep(node, cookie, { totp: codeOf(ada.secret) })).status).toBe(200)
    for (let n = 0; n < 2; n++) expect((await tryLogin('wrong')).status).toBe(401)
    expect((await tryLogin(ada.password)).status).toBe(429)
  })
})

describe('proving again who is signed in, with a second factor', () => {
  const again = ({ cookie, password }: Guarded) =>
    send(test, 'POST /reauthenticate', { cookie, body: { password } })

  it('replaces the session that it was begun with', async () => {
    const ada = await guarded(test)
    const { cookie: flow } = await again(ada)
    const replies: Reply[] = []
    const finish = () => secondStep(test, `${ada.cookie}; ${flow}`, { totp: codeOf(ada.secret) })
    await scenario(test, async () => void replies.push(await finish()), {
      audit: [
        { event_type: 'second_factor' },
        { event_type: 'reauthenticate', account_id: ada.id, target_account_id: ada.id },
        { event_type: 'session_revoke' },
      ],
    })
    const [{ cookie }] = replies as [Reply]
    const { sessions } = await test.client(cookie).account_session_list()
    expect(sessions).toMatchObject([{ id: sessionIn(cookie), methods: ['password', 'totp'], strong: true }])
  })

  it('is refused without that session, or when it has ended', async () => {
    const ada = await guarded(test)
    const other = await test.sessions.create(ada.id)
    const { cookie: flow } = await again(ada)
    const totp = codeOf(ada.secret)
    for (const cookie of [flow, `${other.cookie}; ${flow}`])
      expect(answer(await secondStep(test, cookie, { totp }))).toEqual(expired)
    const lives = (by: string) =>
      db.run(
        sql`update auth_session set expires_at = now() + ${by}::interval where account_id = ${ada.id}::uuid`,
      )
    await lives('0')
    expect(answer(await secondStep(test, `${ada.cookie}; ${flow}`, { totp }))).toEqual(expired)
    await lives('1 day')
    await send(test, 'POST /logout', { cookie: ada.cookie })
    expect(answer(await secondStep(test, `${ada.cookie}; ${flow}`, { totp }))).toEqual(expired)
  })
})

it('an account that is deleted and undeleted is still asked for its factor', async () => {
  const [ada, root] = [await guarded(test), await test.account({ roles: ['admin'] })]
  await root.client.account_delete({ account_id: ada.id })
  await root.client.account_undelete({ account_id: ada.id })
  expect((await firstStep(test, ada)).json).toMatchObject({ error: 'second_factor_required' })
})

it('no log line holds a secret, a code or the token of a flow', async () => {
  const captured = capturedLog()
  await using node = await testService({ log: captured.log })
  const ada = await guarded(node)
  const { cookie = '' } = await firstStep(node, ada)
  const totp = codeOf(ada.secret)
  await secondStep(node, cookie, { totp: wrongCode(ada.secret) })
  await secondStep(node, cookie, { totp })
  for (const secret of [ada.secret, totp, cookie.slice('svc_flow='.length), ...ada.recovery_codes])
    expect(captured.text()).not.toContain(secret)
})

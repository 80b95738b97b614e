import { afterAll, describe, expect, it } from 'vitest'
import { freshIp, send, sessionIn } from '../../test/helpers/account-routes.ts'
import { signIn, testProvider } from '../../test/helpers/oidc.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { codeOf, guarded, secondStep } from '../../test/helpers/totp.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const [corp, other] = await Promise.all([testProvider(), testProvider('other')])
afterAll(() => Promise.all([corp.close(), other.close()]))
const test = await serviceForFile({
  limit_login_ip: null,
  limit_signup_open_ip: '3/3600',
  trusted_proxies: ['127.0.0.1'],
  oidc: [
    corp.entry({ label: 'Corp', on_unknown: 'signup', second_factor: { amr: ['mfa', 'hwk'] } }),
    other.entry({ on_unknown: 'signup', client_auth: 'client_secret_basic' }),
  ],
})
const { app, operations } = test.service
await operations.setSettings({ open_signup: true }, { via: 'test' })

let count = 0
const person = () => {
  const sub = `person-${++count}`
  return {
    sub,
    email: `${sub}@corp.example`,
    email_verified: true,
    name: `Person ${count}`,
    preferred_username: sub,
  }
}
/** Each from its own address, as open signup is limited by address. */
const enter = (who: ReturnType<typeof person> & object, more: object = {}) =>
  signIn(test, corp, who, { ip: freshIp(), ...more })
const accountOf = async (cookie: string | undefined) =>
  (await send(test, 'GET /status', { cookie })).json?.account

const newest = async (event_type: string) =>
  (
    await app.db.rows<{ account_id: string; metadata: object }>(sql`
      select account_id, metadata from audit_entries() where event_type = ${event_type}
      order by written desc limit 1`)
  )[0]

describe('a person whom the service does not know', () => {
  it('gets an account without a password, with the verified e-mail, and a session', async () => {
    const ada = person()
    const reply = await enter(ada)
    expect([reply.status, reply.json]).toEqual([200, { ok: true, created: true, linked: false }])
    expect(await accountOf(reply.cookie)).toMatchObject({
      username: ada.sub,
      email: ada.email,
      email_verified: true,
    })
    const { json } = await send(test, 'GET /status', { cookie: reply.cookie })
    expect(json?.actor).toMatchObject({ name: ada.name })
    expect(reply.headers['set-cookie']?.[1]).toBe(
      'svc_flow=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Strict',
    )
    const { sessions } = await test.client(reply.cookie).account_session_list()
    expect(sessions).toMatchObject([{ methods: ['oidc'], strong: false }])
    for (const password of ['*', 'a long password', '-'.repeat(97)]) {
      const login = await send(test, 'POST /login', { body: { username: ada.sub, password } })
      expect(login.json).toEqual({ error: 'invalid_credentials' })
    }
  })

  it('leaves one row in the audit log', async () => {
    let cookie: string | undefined
    await scenario(
      test,
      async () => {
        cookie = (await enter(person())).cookie
      },
      { audit: [{ event_type: 'signup' }] },
    )
    expect(await newest('signup')).toMatchObject({
      metadata: { session_id: sessionIn(cookie), open_signup: true, provider: 'corp' },
    })
  })

  it.each([
    ['an e-mail that is not verified', { email_verified: false }],
    ['an e-mail without a word about it', { email_verified: undefined }],
    ['an e-mail that is none', { email: 'a b@c.d' }],
    ['an e-mail with U+0000', { email: 'a\0@corp.example' }],
    ['no e-mail', { email: undefined }],
  ])('and has %s gets an account without one', async (_what, change) => {
    const reply = await enter({ ...person(), ...change } as ReturnType<typeof person>)
    expect(await accountOf(reply.cookie)).toMatchObject({ email: null, email_verified: false })
  })

  it.each([
    ['Ä. B', /^a-b$/],
    ['n'.repeat(200), /^n{39}$/],
    ['李小龙', /^user$/],
    ['\0\ud800', /^person-\d+$/],
    [{ not: 'a text' } as unknown as string, /^person-\d+$/],
  ])('and is called %j there gets a username of the format', async (preferred_username, username) => {
    const reply = await enter({ ...person(), preferred_username })
    expect(await accountOf(reply.cookie)).toMatchObject({ username: expect.stringMatching(username) })
  })

  it('and has a name that is taken or reserved gets a number', async () => {
    const { id } = await test.account({ username: 'admin' })
    await app.db.run(
      sql`insert into username_reservation (username, account_id) values ('admin-2', ${id}::uuid)`,
    )
    for (const username of ['admin-3', 'admin-4']) {
      const reply = await enter({ ...person(), preferred_username: 'Admin' })
      expect(await accountOf(reply.cookie)).toMatchObject({ username })
    }
    await test.service.app.db.run(
      sql`update username_reservation set until = date_trunc('milliseconds', now())`,
    )
    const reply = await enter({ ...person(), preferred_username: 'Admin' })
    expect(await accountOf(reply.cookie)).toMatchObject({ username: 'admin-2' })
  })

  it('and has a name that no actor may have gets the username as its name', async () => {
    for (const name of ['\u0007', ' ', '\0', 5 as unknown as string]) {
      const ada = person()
      const { json } = await send(test, 'GET /status', { cookie: (await enter({ ...ada, name })).cookie })
      expect(json?.actor).toMatchObject({ name: ada.sub })
    }
  })

  it('is counted as an open signup, which keeps nobody out who has an account', async () => {
    const ip = freshIp()
    const ada = person()
    for (const who of [ada, person(), person()])
      expect((await signIn(test, corp, who, { ip })).status).toBe(200)
    expect((await signIn(test, corp, person(), { ip })).json).toMatchObject({ error: 'rate_limit_exceeded' })
    expect((await signIn(test, corp, ada, { ip })).json).toEqual({ ok: true, created: false, linked: false })
  })
})

describe('a person with a link', () => {
  it('signs in to the same account, whatever became of name and e-mail there', async () => {
    const ada = person()
    const first = await enter(ada)
    const account = await accountOf(first.cookie)
    const again = await enter({ ...ada, email: 'new@corp.example', preferred_username: 'new', name: 'New' })
    expect(again.json).toEqual({ ok: true, created: false, linked: false })
    expect(await accountOf(again.cookie)).toEqual(account)
  })

  it('leaves a row of the login, with the provider', async () => {
    const ada = person()
    const { id } = (await accountOf((await enter(ada)).cookie)) as { id: string }
    const { cookie } = await enter(ada)
    expect(await newest('login')).toEqual({
      account_id: id,
      metadata: { session_id: sessionIn(cookie), methods: ['oidc'], provider: 'corp' },
    })
  })

  it('is another person at another provider', async () => {
    const ada = person()
    const here = await enter(ada)
    const there = await signIn(
      test,
      other,
      { ...ada, email: 'else@corp.example' },
      { provider: 'other', ip: freshIp() },
    )
    expect(there.json).toEqual({ ok: true, created: true, linked: false })
    expect(await accountOf(there.cookie)).not.toEqual(await accountOf(here.cookie))
  })

  it('replaces the session of the browser, and ends the session of somebody else in it', async () => {
    const [ada, eve] = [person(), await test.account()]
    const first = await enter(ada)
    const second = await enter(ada, { cookie: first.cookie })
    expect((await send(test, 'GET /status', { cookie: first.cookie })).status).toBe(401)
    expect((await enter(ada, { cookie: eve.cookie })).status).toBe(200)
    expect((await send(test, 'GET /status', { cookie: eve.cookie })).status).toBe(401)
    expect((await send(test, 'GET /status', { cookie: second.cookie })).status).toBe(200)
  })

  it('to an account that was deleted is refused, and gets no other one', async () => {
    const ada = person()
    const { cookie } = await enter(ada)
    await test.client(cookie).account_delete()
    const reply = await enter(ada)
    expect([reply.status, reply.json]).toEqual([403, { error: 'oidc_unknown_account' }])
  })

  it('whose e-mail belongs to a deleted account gets none by another identity either', async () => {
    const ada = person()
    const { cookie } = await enter(ada)
    await test.client(cookie).account_delete()
    const reply = await enter({ ...person(), email: ada.email })
    expect([reply.status, reply.json]).toEqual([409, { error: 'oidc_account_exists' }])
  })
})

describe('a session is strong', () => {
  it.each([
    [{ amr: ['pwd', 'mfa'] }, true],
    [{ amr: ['pwd'] }, false],
    [{ amr: 'mfa' }, false],
    [{ acr: 'mfa' }, false],
    [{}, false],
  ])('as the ID token with %j says', async (claims, strong) => {
    const { cookie } = await enter({ ...person(), ...claims })
    expect((await test.client(cookie).account_session_list()).sessions).toMatchObject([{ strong }])
  })

  it('never by a provider without second_factor', async () => {
    const who = { ...person(), amr: ['mfa'], acr: 'mfa' }
    const { cookie } = await signIn(test, other, who, { provider: 'other', ip: freshIp() })
    expect((await test.client(cookie).account_session_list()).sessions).toMatchObject([{ strong: false }])
  })
})

describe('an account with a second factor', () => {
  const linked = async () => {
    const [ada, account] = [person(), await guarded(test)]
    expect((await enter(ada, { intent: 'link', cookie: account.cookie })).json).toMatchObject({
      linked: true,
    })
    return { ada, account }
  }

  it('is asked for it, and signed in by both', async () => {
    const { ada, account } = await linked()
    const first = await enter(ada)
    expect([first.status, first.json]).toEqual([
      401,
      { error: 'second_factor_required', methods: ['totp', 'recovery_code'], expires_in: 300 },
    ])
    expect(first.headers['set-cookie']).toEqual([expect.stringMatching(/^svc_flow=[\w-]{43};/)])
    const { cookie, status } = await secondStep(test, first.cookie, { totp: codeOf(account.secret) })
    expect(status).toBe(200)
    expect(await newest('login')).toEqual({
      account_id: account.id,
      metadata: { session_id: sessionIn(cookie), methods: ['oidc', 'totp'], provider: 'corp' },
    })
  })

  it('is not signed in by the second step once the link is gone', async () => {
    const { ada, account } = await linked()
    const first = await enter(ada)
    const { links } = await account.client.account_sign_in_get()
    expect(links).toMatchObject([{ provider: 'corp', label: 'Corp' }])
    await account.client.account_link_remove({ link_id: links[0]?.id as string })
    const second = await secondStep(test, first.cookie, { totp: codeOf(account.secret) })
    expect([second.status, second.json]).toEqual([409, { error: 'flow_expired' }])
  })

  it('is not asked for it if the provider has', async () => {
    const { ada } = await linked()
    expect((await enter({ ...ada, amr: ['hwk'] } as never)).status).toBe(200)
  })
})

import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { clientSecret, finish, signIn, start, type Tampering, testProvider } from '../../test/helpers/oidc.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'

const [corp, other] = await Promise.all([testProvider(), testProvider('other')])
afterAll(() => Promise.all([corp.close(), other.close()]))
const captured = capturedLog()
const options = {
  limit_login_ip: null,
  oidc: [corp.entry({ on_unknown: 'signup', userinfo: true }), other.entry({ on_unknown: 'signup' })],
} as const
const test = await serviceForFile({ ...options, log: captured.log })
const { app, operations } = test.service
await operations.setSettings({ open_signup: true }, { via: 'test' })
afterEach(() => {
  corp.tampering = {}
})

const ada = { sub: 'subject-of-ada', email: 'ada@corp.example', email_verified: true }
const left = async () =>
  await app.db.rows(sql`select id::text from account union all select id from auth_session order by 1`)
const failed = [401, { error: 'oidc_failed' }]
const now = Math.floor(Date.now() / 1000)

const tamperings: [string, Tampering][] = [
  ['an ID token of another issuer', { claims: { iss: 'https://evil.example' } }],
  ['an ID token for another client', { claims: { aud: 'somebody-else' } }],
  [
    'an ID token for several clients, issued to another one',
    { claims: { aud: ['cellkeep-test', 'x'], azp: 'x' } },
  ],
  ['an ID token for several clients, issued to nobody', { claims: { aud: ['cellkeep-test', 'x'] } }],
  ['an ID token issued to another client', { claims: { azp: 'x' } }],
  ['an ID token with another nonce', { claims: { nonce: 'n'.repeat(43) } }],
  ['an ID token without a nonce', { claims: { nonce: undefined as never } }],
  ['an ID token that expired a minute ago', { claims: { exp: now - 60 } }],
  ['an ID token that begins in an hour', { claims: { nbf: now + 3600 } }],
  ['an ID token that was issued in an hour', { claims: { iat: now + 3600, exp: now + 7200 } }],
  ['an ID token without an expiry', { claims: { exp: undefined as never } }],
  ['an ID token without a subject', { claims: { sub: undefined as never } }],
  ['a subject that is longer than allowed', { claims: { sub: 's'.repeat(256) } }],
  ['a subject with U+0000', { claims: { sub: 'a\0b' } }],
  ['an ID token without a signature', { unsigned: true }],
  ['an ID token signed with a foreign key', { foreignKey: true }],
  ['an ID token of an unknown key', { header: { kid: 'unknown' } }],
  [
    'a token answer without an ID token',
    { answer: { '/token': { body: { access_token: 'a', token_type: 'Bearer' } } } },
  ],
  [
    'a token answer that is an error',
    { answer: { '/token': { status: 400, body: { error: 'invalid_grant' } } } },
  ],
  ['a token answer that is no object', { answer: { '/token': { body: ['x'] } } }],
  ['a userinfo answer about somebody else', { answer: { '/userinfo': { body: { sub: 'somebody-else' } } } }],
]

describe('nothing comes of', () => {
  it.each(tamperings)('%s', async (_what, tampering) => {
    corp.tampering = tampering
    const before = await left()
    const rows = [
      {
        event_type: 'login',
        outcome: 'failure' as const,
        metadata: { reason: 'oidc_failed', provider: 'corp' },
      },
    ]
    const reply = await scenario(test, () => signIn(test, corp, ada), { audit: rows })
    expect([reply.status, reply.json]).toEqual(failed)
    expect(reply.headers['set-cookie']).toEqual([expect.stringMatching(/^svc_flow=;/)])
    expect(await left()).toEqual(before)
  })

  it('a query with another state, without one, with another issuer, an error, two codes, or no code', async () => {
    const before = await left()
    for (const change of [
      (query: URLSearchParams) => query.set('state', 's'.repeat(43)),
      (query: URLSearchParams) => query.delete('state'),
      (query: URLSearchParams) => query.set('iss', other.issuer),
      (query: URLSearchParams) => query.delete('iss'),
      (query: URLSearchParams) => query.set('error', 'access_denied'),
      (query: URLSearchParams) => query.append('code', 'another'),
      (query: URLSearchParams) => query.delete('code'),
      (query: URLSearchParams) => query.set('code', 'unknown'),
      (query: URLSearchParams) => query.set('response', 'x.y.z'),
    ]) {
      const { url, flow } = await start(test)
      const query = new URLSearchParams(corp.authorize(url, ada))
      change(query)
      const reply = await finish(test, { flow, query: query.toString() })
      expect([reply.status, reply.json]).toEqual(failed)
    }
    for (const query of ['?', '#', '%', '\u2028', 'a'.repeat(8192)]) {
      const { flow } = await start(test)
      expect((await finish(test, { flow, query })).json).toEqual({ error: 'oidc_failed' })
    }
    expect(await left()).toEqual(before)
  })

  it('a code that was redeemed before, or that another browser has begun', async () => {
    const first = await start(test)
    const query = corp.authorize(first.url, ada)
    expect((await finish(test, { ...first, query })).status).toBe(200)
    const second = await start(test)
    const replayed = new URLSearchParams(query)
    replayed.set('state', new URL(second.url).searchParams.get('state') as string)
    const reply = await finish(test, { ...second, query: replayed.toString() })
    expect([reply.status, reply.json]).toEqual(failed)
    const [mine, theirs] = [await start(test), await start(test)]
    const stolen = new URLSearchParams(corp.authorize(theirs.url, ada))
    stolen.set('state', new URL(mine.url).searchParams.get('state') as string)
    expect((await finish(test, { ...mine, query: stolen.toString() })).json).toEqual({ error: 'oidc_failed' })
  })

  it('an answer of one provider that is posted as that of another', async () => {
    const { url, flow } = await start(test)
    const query = corp.authorize(url, ada)
    const reply = await finish(test, { flow, query, provider: 'other' })
    expect([reply.status, reply.json]).toEqual(failed)
    // The other provider never gets the code.
    expect(other.asked).toEqual([])
    expect((await finish(test, { flow, query })).json).toEqual({ error: 'flow_expired' })
  })

  it('metadata of another issuer', async () => {
    const liar = await testProvider('liar')
    for (const issuer of [corp.issuer, `${liar.issuer}/`]) {
      liar.tampering = {
        answer: {
          '/.well-known/openid-configuration': {
            body: { issuer, authorization_endpoint: `${liar.issuer}/auth` },
          },
        },
      }
      await using fresh = await testService({ ...options, oidc: [liar.entry()] })
      const { reply } = await start(fresh, { provider: 'liar' })
      expect([reply.status, reply.json]).toEqual(failed)
    }
    await liar.close()
  })
})

it.each<[string, Record<string, unknown>, object, string | null]>([
  ['of the ID token, where userinfo verifies another one', { email: 'e@x.io' }, { email: 'own@x.io' }, null],
  [
    'of the ID token, where userinfo verifies the same one',
    { email: 'f@x.io' },
    { email: 'f@x.io' },
    'f@x.io',
  ],
  ['of the ID token, where userinfo names none', { email: 'g@x.io' }, {}, 'g@x.io'],
  ['of userinfo, where the ID token names none', { email: undefined }, { email: 'h@x.io' }, 'h@x.io'],
  [
    'of userinfo that it does not verify itself',
    { email_verified: true },
    { email: 'i@x.io', email_verified: false },
    null,
  ],
])('an e-mail %s', async (what, claims, userinfo, expected) => {
  const sub = sha256Hex(what)
  corp.tampering = {
    claims,
    answer: { '/userinfo': { body: { sub, email_verified: true, ...userinfo } } },
  }
  const { cookie } = await signIn(test, corp, { sub })
  const { json } = await send(test, 'GET /status', { cookie })
  expect(json?.account).toMatchObject({ email: expected, email_verified: expected !== null })
})

describe('a flow', () => {
  const expired = [409, { error: 'flow_expired' }]

  it('is finished by the browser that began it: the answer of an attacker signs nobody in', async () => {
    const { url } = await start(test)
    const query = corp.authorize(url, ada)
    const victim = await start(test)
    const without = await finish(test, { flow: undefined, query })
    expect([without.status, without.json]).toEqual(expired)
    const reply = await finish(test, { flow: victim.flow, query })
    expect([reply.status, reply.json]).toEqual(failed)
  })

  it('is finished once, even at the same moment', async () => {
    const { url, flow } = await start(test)
    const query = corp.authorize(url, ada)
    const replies = await Promise.all([1, 2, 3].map(() => finish(test, { flow, query })))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409])
  })

  it('that expired, or whose cookie has one letter changed, is answered alike', async () => {
    const { url, flow } = await start(test)
    const query = corp.authorize(url, ada)
    const last = flow?.at(-2) === 'A' ? 'B' : 'A'
    const changed = `${flow?.slice(0, -2)}${last}${flow?.slice(-1)}`
    const replies = [
      await finish(test, { flow: changed, query }),
      await finish(test, { flow: undefined, query }),
    ]
    await app.db.run(sql`update sign_in_flow set expires_at = date_trunc('milliseconds', now())`)
    replies.push(await finish(test, { flow, query }))
    expect(replies.map(({ status, json }) => [status, json])).toEqual([expired, expired, expired])
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
  })
})

it('a provider that is down: 503, and nobody waits for a connection to the database', async () => {
  const small = await testService({ ...options, database_pool_max: 2 })
  await using _ = small
  await start(small)
  let release = () => {}
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  corp.tampering = { before: (path) => (path === '/token' ? gate : undefined) }
  const stuck = Array.from({ length: 6 }, async () => {
    const { url, flow } = await start(small)
    return await finish(small, { flow, query: corp.authorize(url, ada) })
  })
  await expect.poll(() => corp.asked.filter((path) => path === '/token').length).toBeGreaterThanOrEqual(6)
  const account = await small.account()
  expect(await account.client.account_verify()).toMatchObject({ id: account.id })
  for (const { status, json, headers } of await Promise.all(stuck)) {
    expect([status, json]).toEqual([503, { error: 'provider_unavailable', retry_after: 5 }])
    expect(headers['retry-after']).toBe('5')
  }
  release()
})

it.each([
  ['fails', { answer: { '/token': { status: 502 } } }],
  ['has too much to say', { answer: { '/userinfo': { body: { sub: ada.sub, x: 'x'.repeat(1_100_000) } } } }],
])('a provider that %s: 503', async (_what, tampering: Tampering) => {
  corp.tampering = tampering
  expect(await signIn(test, corp, ada)).toMatchObject({
    status: 503,
    json: { error: 'provider_unavailable' },
  })
})

it('a provider whose metadata could not be read is asked again at the next sign-in', async () => {
  const late = await testProvider('late')
  await using fresh = await testService({ ...options, oidc: [late.entry({ on_unknown: 'signup' })] })
  late.tampering = { answer: { '/.well-known/openid-configuration': { status: 503 } } }
  expect((await start(fresh, { provider: 'late' })).reply.json).toMatchObject({
    error: 'provider_unavailable',
  })
  late.tampering = {}
  expect((await start(fresh, { provider: 'late' })).reply.status).toBe(200)
  await late.close()
})

it('a provider that has just changed its key is asked for it, but not for every unknown key', async () => {
  const turning = await testProvider('turning')
  await using fresh = await testService({ ...options, oidc: [turning.entry({ on_unknown: 'signup' })] })
  await fresh.service.operations.setSettings({ open_signup: true }, { via: 'test' })
  const enter = async () => (await signIn(fresh, turning, ada, { provider: 'turning' })).status
  const readings = () => turning.asked.filter((path) => path === '/jwks').length
  expect(await enter()).toBe(200)
  await turning.rotate()
  expect([await enter(), await enter(), readings()]).toEqual([200, 200, 2])
  turning.tampering = { header: { kid: 'unknown' } }
  expect([await enter(), await enter(), readings()]).toEqual([401, 401, 2])
  await turning.close()
})

it.each([1, -1])(
  'an ID token is judged by the clock of the database, %d h from that of the machine',
  async (hours) => {
    const times = (seconds: number) => ({ iat: now + seconds - 60, exp: now + seconds })
    const machine = vi.spyOn(Date, 'now')
    onTestFinished(() => machine.mockRestore())
    machine.mockImplementation(() => performance.timeOrigin + performance.now() + hours * 3_600_000)
    corp.tampering = { claims: times(60) }
    expect((await signIn(test, corp, ada)).status).toBe(200)
    corp.tampering = { claims: times(-60) }
    expect((await signIn(test, corp, ada)).status).toBe(401)
  },
)

it('secrets of a sign-in are in no log line and no audit row, the subject only in its link', async () => {
  const { url, flow } = await start(test)
  const query = corp.authorize(url, { ...ada, name: 'name-of-ada' })
  await finish(test, { flow, query })
  const asked = new URL(url).searchParams
  const secrets = [
    ...[clientSecret, ada.sub, flow?.split('=')[1], new URLSearchParams(query).get('code')],
    ...[asked.get('state'), asked.get('nonce'), asked.get('code_challenge')],
  ] as string[]
  const audit = JSON.stringify(await app.db.rows(sql`select * from audit_entries()`))
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(8)
    expect(captured.text()).not.toContain(secret)
    expect(audit).not.toContain(secret)
  }
  expect(captured.text()).toMatch(/"provider":"corp","cause":"unexpected JWT claim value encountered/)
  const tables = await app.db.rows<{ name: string }>(sql`
    select tablename as name from pg_tables where schemaname = current_schema()`)
  const holding = []
  for (const { name } of tables) {
    const [found] = await app.db.rows(sql`
      select from ${sql.raw(`"${name}"`)} t where t::text like ${`%${ada.sub}%`} limit 1`)
    if (found) holding.push(name)
  }
  expect(holding).toEqual(['account_link'])
})

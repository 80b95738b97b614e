import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, exchange, type Reply, rpc, send } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { query } from '../core/declare.ts'
import { refusal } from '../errors.ts'
import { testService } from '../testing/index.ts'

const open = { account: 'none', actor: 'none' } as const
const actions = {
  broken: query({
    doc: 'Fails unexpectedly.',
    auth: open,
    output: z.null(),
    handler: async () => {
      throw new Error('secret-of-the-handler')
    },
  }),
  unavailable: query({
    doc: 'Says that the database is gone.',
    auth: open,
    output: z.null(),
    handler: async () => {
      throw refusal('service_unavailable')
    },
  }),
}

const foreign = 'https://evil.example'
const badCookie = 'svc_session=broken'
const loginMax = 2
const captured = capturedLog()
const test = await serviceForFile({
  actions,
  log: captured.log,
  allowed_origins: ['https://app.example'],
  limit_login_ip: `${loginMax}/900`,
})
const ada = await test.account()

const asked = (path: string, method = 'GET', headers = {}) => send(test.url, { path, method, headers })

describe('every reply', () => {
  const login = () => send(test.url, { method: 'POST', path: '/api/account/login', body: wrong })
  const exhausted = async () => {
    for (let attempt = 0; attempt < loginMax; attempt++) await login()
    return await login()
  }
  const wrong = { username: 'nobody', password: 'not the password' }
  const kinds: [string, number, () => Promise<Reply>][] = [
    ['health', 200, () => asked('/health')],
    ['a result', 200, () => rpc(test.url, call('cell_list'))],
    ['a batch', 200, () => rpc(test.url, [call('cell_list')])],
    ['status', 200, () => asked('/api/account/status', 'GET', { cookie: ada.cookie })],
    ['a bad envelope', 400, () => rpc(test.url, {})],
    ['bad params', 400, () => rpc(test.url, call('cell_list', { x: 1 }))],
    ['a bad REST body', 400, () => send(test.url, { method: 'POST', path: '/api/account/login', body: [] })],
    ['no credential, REST', 401, () => asked('/api/account/status')],
    ['no credential, RPC', 401, () => rpc(test.url, call('account_verify'))],
    ['a wrong password', 401, login],
    ['a foreign origin', 403, () => asked('/api/account/login', 'POST', { origin: foreign })],
    ['no path', 404, () => asked('/nowhere')],
    ['no method', 404, () => rpc(test.url, call('nothing'))],
    ['no verb', 405, () => asked('/api/rpc', 'PUT')],
    ['too large', 413, () => asked('/api/rpc', 'POST', { 'content-length': 1e7 })],
    ['no JSON type', 415, () => rpc(test.url, 'x', { 'content-type': 'text/plain' })],
    ['too many logins', 429, exhausted],
    ['a failure', 500, () => rpc(test.url, call('broken'))],
    ['no database', 503, () => rpc(test.url, call('unavailable'))],
  ]
  it.each(kinds)('%s (%i) is private JSON and names no software', async (_kind, status, act) => {
    const reply = await act()
    expect(reply.status).toBe(status)
    expect(reply.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      vary: 'Cookie, Authorization, Origin',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'content-length': String(Buffer.byteLength(reply.text)),
    })
    for (const name of ['server', 'x-powered-by', 'www-authenticate', 'location', 'set-cookie'])
      expect(reply.headers).not.toHaveProperty(name)
    expect(reply.text).not.toContain('secret-of-the-handler')
    expect(reply.json).toBeTypeOf('object')
  })

  it('a 429 says in the header what it says in the body', async () => {
    const { headers, json } = await exhausted()
    expect(json).toEqual({ error: 'rate_limit_exceeded', retry_after: Number(headers['retry-after']) })
  })

  it('says the same in production as in development', async () => {
    const production = await testService({ actions, env: 'production', argon2: '19456,2,1' })
    try {
      for (const body of [call('broken'), call('cell_list', { limit: 'x' }), call('nothing'), {}, [], '{'])
        expect((await rpc(production.url, body)).text).toBe((await rpc(test.url, body)).text)
    } finally {
      await production.close()
    }
  })

  it('verify answers with an empty body and the identity, whatever identity was sent', async () => {
    const headers = { cookie: ada.cookie, 'x-svc-account-id': 'other', 'x-svc-username': 'other' }
    const reply = await asked('/api/account/verify', 'GET', headers)
    expect(reply).toMatchObject({ status: 200, text: '' })
    expect(reply.headers).toMatchObject({
      'content-length': '0',
      'x-svc-account-id': ada.id,
      'x-svc-username': ada.username,
    })
    expect(reply.headers).not.toHaveProperty('content-type')
  })
})

describe('the request id', () => {
  it.each(['a', 'A.b_c-9', 'x'.repeat(128)])('%s is taken and echoed, also on a refusal', async (id) => {
    for (const path of ['/health', '/nowhere', '/api/account/status'])
      expect((await asked(path, 'GET', { 'x-request-id': id })).headers['x-request-id']).toBe(id)
  })

  it.each(['', ' ', 'a b', 'x'.repeat(129), 'a,b', 'é', '"', '<x>', 'a/b'])('%j is replaced', async (id) => {
    const { headers } = await asked('/health', 'GET', { 'x-request-id': id })
    expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('two of them are replaced by one', async () => {
    const { headers } = await asked('/health', 'GET', { 'x-request-id': ['a', 'b'] })
    expect(headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('one that smuggles a line is refused or replaced, and its line is not echoed', async () => {
    for (const id of ['a\r\n X-Evil: 1', 'a\nX-Evil: 1', 'a\rX-Evil: 1']) {
      const bytes = `GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: ${id}\r\n\r\n`
      expect(await exchange(test.url, bytes)).not.toMatch(/evil/i)
    }
  })
})

describe('a session cookie', () => {
  const cleared = [expect.stringMatching(/^svc_session=; Max-Age=0; Path=\/; HttpOnly; /)]

  it.each([
    ['200', '/api/rpc', 'POST', call('cell_list')],
    ['400', '/api/rpc', 'POST', {}],
    ['401', '/api/account/status', 'GET', undefined],
    ['405', '/api/account/login', 'GET', undefined],
    ['413', '/api/rpc', 'POST', ' '.repeat(1_048_577)],
    ['415', '/api/rpc', 'POST', undefined],
    ['500', '/api/rpc', 'POST', call('broken')],
  ])('of bad form is cleared by a %s of the API', async (status, path, method, body) => {
    const headers = { cookie: badCookie, ...(status === '415' && { 'content-length': 1 }) }
    const reply = await send(test.url, { path, method, body, headers })
    expect([reply.status, reply.headers['set-cookie']]).toEqual([Number(status), cleared])
  })

  it('of bad form is left alone where no API answers', async () => {
    for (const path of ['/health', '/ready', '/nowhere'])
      expect((await asked(path, 'GET', { cookie: badCookie })).headers).not.toHaveProperty('set-cookie')
  })

  it('whose session is gone is not cleared, so that a late reply cannot wipe a newer login', async () => {
    const bob = await test.account()
    await bob.client.account_session_revoke_all()
    const headers = { cookie: bob.cookie }
    for (const reply of [
      await asked('/api/account/status', 'GET', headers),
      await rpc(test.url, call('account_verify'), headers),
    ])
      expect([reply.status, reply.headers['set-cookie']]).toEqual([401, undefined])
  })

  it('counts in a second Cookie line too', async () => {
    const headers = { cookie: ['theme=dark', ada.cookie] }
    expect((await asked('/api/account/status', 'GET', headers)).status).toBe(200)
  })
})

describe('the log', () => {
  it('has one line per request, with what an operator needs', async () => {
    const before = captured.lines().length
    await rpc(test.url, call('account_session_list'), { cookie: ada.cookie, 'x-request-id': 'wanted' })
    const lines = captured.lines().slice(before)
    // Whether anything waited for a connection varies.
    for (const line of lines) delete line.db_wait_ms
    expect(lines).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        level: 'info',
        msg: 'request',
        request_id: 'wanted',
        method: 'POST',
        path: '/api/rpc',
        status: 200,
        duration_ms: expect.any(Number),
        db_ms: expect.any(Number),
        rpc_method: 'account_session_list',
        account_id: ada.id,
        ip: '127.0.0.1',
      },
    ])
  })

  it('tells a repetition under one idempotency key from the call that did it', async () => {
    const headers = { cookie: ada.cookie, 'idempotency-key': 'a-key-of-the-log-1' }
    const before = captured.lines().length
    for (let n = 0; n < 2; n++) await rpc(test.url, call('cell_create', { data: {} }), headers)
    expect(
      captured
        .lines()
        .slice(before)
        .map(({ replayed }) => replayed),
    ).toEqual([undefined, true])
  })

  it.each([
    ['/nowhere', {}, 'not_found'],
    ['/api/rpc', { origin: foreign, cookie: badCookie }, 'forbidden_origin'],
    ['/api/account/login', {}, 'method_not_allowed'],
    ['/api/account/status', {}, 'authentication_required'],
    ['/api/rpc?method=nothing&id=1', {}, 'method_not_found'],
    ['/api/rpc?method=nothing', {}, 'invalid_request'],
  ])('says why %s was refused', async (path, headers, reason) => {
    await asked(path, 'GET', headers)
    expect(captured.lines().at(-1)).toMatchObject({ reason, path: path.split('?')[0] })
  })

  it('names no method that a caller made up', async () => {
    await rpc(test.url, call('secret_method_name'))
    expect(captured.lines().at(-1)).toMatchObject({ rpc_method: 'unknown' })
  })

  it('holds no query, fragment, body, cookie, token or login name', async () => {
    const secrets = [
      'query-secret',
      'fragment-secret',
      'body-secret',
      'bearer-secret',
      'daemon-secret',
      'login-secret',
      'pw-secret',
    ]
    const headers = {
      cookie: ada.cookie,
      authorization: 'Bearer bearer-secret',
      'x-daemon-token': 'daemon-secret',
    }
    await asked('/nowhere?a=query-secret', 'GET', headers)
    await asked('/admin/link#ticket=fragment-secret')
    await asked('/admin/link%23ticket=fragment-secret')
    await asked('/api/rpc?method=cell_list&id=query-secret&params={"kind":"query-secret"}', 'GET', headers)
    await rpc(test.url, call('cell_create', { data: { label: 'body-secret' } }, 'body-secret'), headers)
    await rpc(test.url, call('broken', { x: 'body-secret' }), headers)
    await rpc(test.url, call('broken'), headers)
    const body = { username: 'login-secret', password: 'pw-secret' }
    await send(test.url, { method: 'POST', path: '/api/account/login', body })
    const text = captured.text()
    for (const secret of [...secrets, ada.cookie, ada.cookie.split('=')[1] as string])
      expect(text).not.toContain(secret)
    expect(text).toContain('secret-of-the-handler')
  })
})

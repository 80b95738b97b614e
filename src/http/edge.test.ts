import { describe, expect, it } from 'vitest'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, exchange, open, rpc, send } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { tokenPlace } from '../../test/helpers/token-place.ts'

const allowed = 'https://app.example'
const foreign = 'https://evil.example'
const bootstrap_token_path = await tokenPlace()
const captured = capturedLog()
const test = await serviceForFile({
  log: captured.log,
  bootstrap: 'live',
  bootstrap_token_path,
  allowed_origins: [allowed, 'https://*.x.example'],
})
const ada = await test.account()

const asked = (path: string, method = 'GET', headers = {}) => send(test.url, { path, method, headers })
const badCookie = 'svc_session=broken'

describe('the order of refusals', () => {
  const oversized = { 'content-length': 1_048_577 }
  const crossSite = { origin: foreign, cookie: badCookie }
  it.each([
    ['a declared length over the limit', '/nowhere', 'PUT', { ...oversized, ...crossSite }, 413],
    ['the origin', '/nowhere', 'PUT', crossSite, 403],
    ['the path', '/nowhere', 'PUT', {}, 404],
    ['the verb', '/api/account/password', 'PUT', {}, 405],
    ['the credential', '/api/account/password', 'POST', { 'content-type': 'text/plain' }, 401],
  ])('%s comes in its place', async (_what, path, method, headers, status) => {
    expect((await asked(path, method, headers)).status).toBe(status)
  })

  it('a length over the limit is refused before any credential, on every path', async () => {
    for (const path of ['/api/rpc', '/api/account/login', '/api/account/logout', '/nowhere', '/health']) {
      const reply = await asked(path, 'POST', oversized)
      expect([path, reply.status, reply.json]).toEqual([path, 413, { error: 'payload_too_large' }])
      expect(reply.headers.connection).toBe('close')
    }
  })
})

describe('paths and verbs', () => {
  it.each([
    '//api/account/login',
    '/api/account/login/',
    '/api/account//login',
    '/api/account/./login',
    '/api/account/x/../login',
    '/api/account/%2e%2e/account/login',
    '/api/account%2Flogin',
    '/api/account/%6Cogin',
    '/api/account/LOGIN',
    '/API/account/login',
    '/api/account\\login',
    '/api/account/login;x',
    '/api/account/login%00',
    '/api/account/login%3Fx',
    '/api/rpc/',
    '/API/rpc',
    '/api',
    '/',
    '/health/',
    '/Health',
    '/health/live/x',
    '/metrics',
    '/api/ws/',
    '*',
    'http://x/api/account/login',
  ])('%s is no path of the service and never a redirect', async (path) => {
    const received = await exchange(
      test.url,
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    )
    expect(received).toMatch(/^HTTP\/1\.1 404 /)
    expect(received).toMatch(/\r\n\r\n\{"error":"not_found"\}$/)
    expect(received).not.toMatch(/location:/i)
  })

  it.each([
    ['/api/rpc', 'GET, POST'],
    ['/api/account/login', 'POST'],
    ['/api/account/logout', 'POST'],
    ['/api/account/password', 'POST'],
    ['/api/account/bootstrap', 'POST'],
    ['/api/account/verify', 'GET, HEAD'],
    ['/api/account/status', 'GET, HEAD'],
    ['/health', 'GET, HEAD'],
    ['/health/live', 'GET, HEAD'],
    ['/health/ready', 'GET, HEAD'],
    ['/ready', 'GET, HEAD'],
  ])('%s takes %s and refuses every other verb with that list', async (path, allow) => {
    const taken = allow.split(', ')
    const verbs = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']
    for (const verb of verbs) {
      const { status, headers } = await asked(path, verb)
      if (taken.includes(verb)) expect([verb, status]).not.toEqual([verb, 405])
      else expect([verb, status, headers.allow]).toEqual([verb, 405, allow])
    }
  })

  it('headers and query keys that would override the verb change nothing', async () => {
    for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override'])
      expect((await asked('/api/account/login?_method=POST', 'GET', { [name]: 'POST' })).status).toBe(405)
  })

  it.each([
    ['/health', {}],
    ['/ready', {}],
    ['/api/account/status', {}],
    ['/api/account/status', 'session'],
    ['/api/account/verify', {}],
    ['/api/account/verify', 'session'],
  ])('HEAD %s (%o) has the status and headers of GET and no body', async (path, credential) => {
    const headers = { 'x-request-id': 'same', ...(credential === 'session' && { cookie: ada.cookie }) }
    const [get, head] = [await asked(path, 'GET', headers), await asked(path, 'HEAD', headers)]
    expect(head.text).toBe('')
    expect([head.status, { ...head.headers, date: '' }]).toEqual([get.status, { ...get.headers, date: '' }])
  })

  it('the health and account probes ignore unknown query keys; other routes refuse them', async () => {
    for (const path of ['/health', '/ready', '/api/account/status', '/api/account/verify'])
      expect((await asked(`${path}?x=1`)).status).toBe((await asked(path)).status)
    const { status, json } = await asked('/api/account/login?x%00=1', 'POST')
    expect(status).toBe(400)
    expect(json).toMatchObject({
      error: 'invalid_query_params',
      issues: [{ path: ['x\ufffd'], code: 'unrecognized_keys' }],
    })
  })
})

describe('the origin', () => {
  const refused = { status: 403, json: { error: 'forbidden_origin' } }
  const odd = ['', 'null', foreign, `${allowed}:8443`, `${allowed}.evil`, 'https://evil-app.example']

  it.each(odd)('%j is refused wherever a session cookie came along, valid or not', async (origin) => {
    for (const cookie of [ada.cookie, badCookie])
      for (const [path, method] of [
        ['/api/rpc', 'POST'],
        ['/api/rpc', 'GET'],
        ['/api/account/status', 'GET'],
        ['/api/account/verify', 'GET'],
        ['/api/account/verify', 'HEAD'],
        ['/api/account/logout', 'POST'],
        ['/nowhere', 'GET'],
      ] as const) {
        const { status } = await asked(path, method, { origin, cookie })
        expect([path, method, status]).toEqual([path, method, 403])
      }
    expect(await asked('/api/rpc', 'POST', { origin, cookie: ada.cookie })).toMatchObject(refused)
  })

  it('is in the log, bounded, where it was refused and nowhere else', async () => {
    const before = captured.lines().length
    const long = `${foreign}/${'x'.repeat(200)}`
    for (const origin of [foreign, long, allowed])
      await asked('/api/account/status', 'GET', { origin, cookie: badCookie })
    await asked('/api/account/status', 'GET', { origin: foreign })
    const requests = () =>
      captured
        .lines()
        .slice(before)
        .filter(({ msg }) => msg === 'request')
    await expect.poll(() => requests().length).toBe(4)
    expect(requests().map(({ reason, origin }) => [reason, origin])).toEqual([
      ['forbidden_origin', foreign],
      ['forbidden_origin', long.slice(0, 100)],
      ...[allowed, foreign].map(() => ['authentication_required', undefined]),
    ])
  })

  it.each(odd)('%j is refused at login and bootstrap even without a cookie', async (origin) => {
    for (const path of ['/api/account/login', '/api/account/bootstrap'])
      for (const method of ['POST', 'GET', 'OPTIONS'])
        expect(await asked(path, method, { origin })).toMatchObject(refused)
  })

  it('two Origin lines are refused though each is allowed', async () => {
    const headers = { origin: [allowed, allowed], cookie: ada.cookie }
    expect(await asked('/api/account/status', 'GET', headers)).toMatchObject(refused)
  })

  it('without ambient credentials a foreign origin gets the anonymous answer', async () => {
    const headers = { origin: foreign, authorization: `Bearer secret_svc_token_${'a'.repeat(43)}` }
    expect((await asked('/api/account/status', 'GET', headers)).status).toBe(401)
    const reply = await rpc(test.url, call('account_verify'), headers)
    expect(reply).toMatchObject({ status: 401, json: { error: { code: -32001 } } })
    expect((await rpc(test.url, call('cell_list'), headers)).status).toBe(200)
  })

  it.each([undefined, allowed, 'HTTPS://APP.Example', 'https://a.x.example'])('%s passes', async (origin) => {
    const headers = { cookie: ada.cookie, ...(origin && { origin }) }
    expect((await asked('/api/account/status', 'GET', headers)).status).toBe(200)
  })

  it('health and readiness answer every origin', async () => {
    for (const path of ['/health', '/ready'])
      expect((await asked(path, 'GET', { origin: foreign, cookie: ada.cookie })).status).toBe(200)
  })

  it('without CORS no reply has an Access-Control header', async () => {
    const preflight = { origin: allowed, 'access-control-request-method': 'POST' }
    const replies = [
      await asked('/api/rpc', 'OPTIONS', preflight),
      await asked('/api/account/status', 'GET', { origin: allowed, cookie: ada.cookie }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([405, 200])
    for (const { headers } of replies)
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})

it('a client that resets its connection right behind its request is no failure of the service', async () => {
  const path = '/api/account/verify'
  for (const offer of ['', 'Connection: Upgrade\r\nUpgrade: websocket\r\n']) {
    const before = captured.lines().length
    const client = await open(test.url)
    client.write(`GET ${offer ? '/api/ws' : path} HTTP/1.1\r\nHost: x\r\n${offer}\r\n`)
    client.resetAndDestroy()
    const lines = () => captured.lines().slice(before)
    await expect
      .poll(() => lines().filter(({ msg }) => msg === 'request'))
      .toMatchObject([{ status: 499, reason: 'client_left' }])
    expect(lines().filter(({ level }) => level === 'error')).toEqual([])
  }
})

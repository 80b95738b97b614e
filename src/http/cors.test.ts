import type { OutgoingHttpHeaders } from 'node:http'
import { expect, it } from 'vitest'
import { send } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

const allowed = 'https://app.example'
const foreign = 'https://evil.example'
const test = await serviceForFile({ cors: true, allowed_origins: [allowed], pages: true })
const ada = await test.account()

const asked = (path: string, method: string, headers: OutgoingHttpHeaders) =>
  send(test.url, { path, method, headers })
const corsOf = (headers: object) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('access-control')))
const preflight = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'content-type',
}

it.each([
  [200, '/health', 'GET', {}],
  [200, '/api/account/status', 'GET', 'session'],
  [400, '/api/rpc', 'POST', {}],
  [401, '/api/account/status', 'GET', {}],
  [404, '/nowhere', 'GET', {}],
  [405, '/api/rpc', 'PUT', {}],
  [413, '/api/rpc', 'POST', { 'content-length': 1e7 }],
  [415, '/api/rpc', 'POST', { 'content-length': 1 }],
])('a page of an allowed origin may read a %i', async (status, path, method, headers) => {
  const cookie = headers === 'session' ? { cookie: ada.cookie } : headers
  const reply = await asked(path, method, { origin: allowed, ...(cookie as object) })
  expect(reply.status).toBe(status)
  expect(corsOf(reply.headers)).toEqual({
    'access-control-allow-origin': allowed,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': 'Retry-After, X-Request-Id, Idempotency-Replayed',
  })
  expect(reply.headers.vary).toContain('Origin')
})

it('a preflight of an allowed origin is answered 204, on every path of the service', async () => {
  for (const path of ['/api/rpc', '/api/account/login', '/api/account/status', '/health']) {
    const reply = await asked(path, 'OPTIONS', { origin: allowed, ...preflight })
    expect(reply).toMatchObject({ status: 204, text: '' })
    expect(corsOf(reply.headers)).toEqual({
      'access-control-allow-origin': allowed,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'Retry-After, X-Request-Id, Idempotency-Replayed',
      'access-control-allow-methods': 'GET, HEAD, POST',
      'access-control-allow-headers': 'Content-Type, X-Request-Id, Last-Event-ID, Idempotency-Key',
      'access-control-max-age': '600',
    })
    expect(reply.headers).toMatchObject({ vary: 'Origin', 'x-content-type-options': 'nosniff' })
  }
})

it.each([
  ['without a method asked for', '/api/rpc', { origin: allowed }, 405],
  ['without an origin', '/api/rpc', preflight, 405],
  ['of another origin', '/api/rpc', { origin: foreign, ...preflight }, 405],
  ['of another origin, at login', '/api/account/login', { origin: foreign, ...preflight }, 403],
  ['of no path', '/nowhere', { origin: allowed, ...preflight }, 404],
])('OPTIONS %s is no preflight', async (_what, path, headers, status) => {
  expect((await asked(path, 'OPTIONS', headers)).status).toBe(status)
})

it.each([
  ['another origin', foreign],
  ['null', 'null'],
  ['nothing', ''],
])('%s gets no CORS header, neither on an answer nor on a refusal', async (_what, origin) => {
  for (const headers of [{ origin }, { origin, cookie: ada.cookie }])
    expect(corsOf((await asked('/api/account/status', 'GET', headers)).headers)).toEqual({})
})

it('every answer tells caches that it depends on the origin, whoever asked', async () => {
  for (const path of ['/', '/health', '/api/openrpc.json', '/nowhere'])
    for (const headers of [{}, { origin: allowed }, { origin: foreign }])
      expect((await asked(path, 'GET', headers)).headers.vary).toMatch(/\bOrigin\b/)
})

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type OpenStream, openStream, streamPath } from '../../test/helpers/audit-streams.ts'
import { bearer, daemonHeaders, tokenOf } from '../../test/helpers/callers.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { send } from '../../test/helpers/http.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

const origin = 'https://app.example'
const log = capturedLog()
let test: TestService
let admin: TestAccount
let user: TestAccount
beforeAll(async () => {
  test = await testService({ audit_stream: true, cors: true, allowed_origins: [origin], log: log.log })
  admin = await test.account({ roles: ['admin'] })
  user = await test.account()
})
afterAll(() => test.close())

const ask = (headers: Record<string, string>, query = '', method = 'GET') =>
  send(test.url, { path: streamPath + query, method, headers })
const opened = async (...args: [headers: Record<string, string>, query?: string]): Promise<OpenStream> => {
  const stream = await openStream(test, ...args)
  onTestFinished(() => stream.leave())
  expect(stream.status).toBe(200)
  expect(await stream.next()).toBe(': connected')
  return stream
}
const refused = async (...args: Parameters<typeof ask>) => {
  const { status, json } = await ask(...args)
  return [status, json]
}

describe('the audit stream', () => {
  it('is a 404 like any other where it is off, which it is in the library', async () => {
    const plain = await testService()
    onTestFinished(() => plain.close())
    const { cookie } = await plain.account({ roles: ['admin'] })
    const reply = await send(plain.url, { path: streamPath, headers: { cookie } })
    expect([reply.status, reply.json]).toEqual([404, { error: 'not_found' }])
    expect(reply.headers['content-type']).toBe('application/json')
  })

  it('begins with the opening, at once and alone, as an event stream that nothing stores, buffers or compresses', async () => {
    const stream = await openStream(test, { cookie: admin.cookie, 'accept-encoding': 'gzip, br' })
    onTestFinished(() => stream.leave())
    expect(await stream.next()).toBe(': connected')
    expect(stream.text()).toBe(': connected\n\n')
    expect(stream.status).toBe(200)
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      vary: 'Cookie, Authorization, Origin',
    })
    for (const name of ['content-encoding', 'content-length', 'set-cookie'])
      expect(stream.headers[name]).toBeUndefined()
  })

  it('answers GET alone', async () => {
    for (const method of ['HEAD', 'POST', 'DELETE']) {
      const reply = await ask({ cookie: admin.cookie }, '', method)
      expect([reply.status, reply.headers.allow]).toEqual([405, 'GET'])
    }
  })

  it('is opened by each type of credential', async () => {
    const { headers } = await tokenOf(test, admin)
    const keeper = await test.account({ roles: ['keeper', 'admin'] })
    await opened({ cookie: admin.cookie })
    await opened(headers)
    await opened(daemonHeaders(test))
    expect(keeper.id).toBeDefined()
  })

  it('is read by pages of an allowed origin, and refuses all others even without a cookie', async () => {
    const stream = await opened({ cookie: admin.cookie, origin })
    expect(stream.headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
    })
    const evil = { origin: 'https://evil.example' }
    expect(await refused(evil)).toEqual([403, { error: 'forbidden_origin' }])
    expect(await refused({ ...evil, cookie: admin.cookie })).toEqual([403, { error: 'forbidden_origin' }])
  })

  it('never issues a cookie, and clears a broken one', async () => {
    const { headers } = await tokenOf(test, admin)
    const stream = await opened({ ...headers, cookie: 'svc_session=broken' })
    expect(stream.headers['set-cookie']?.[0]).toContain('Max-Age=0')
  })

  it('logs its request once when it opens, and when it ends says how long it was', async () => {
    const stream = await openStream(test, { cookie: admin.cookie, 'x-request-id': 'logged-stream' })
    await stream.next()
    const lines = () => log.lines().filter(({ request_id }) => request_id === 'logged-stream')
    expect(lines()).toMatchObject([
      { msg: 'request', method: 'GET', path: streamPath, status: 200, account_id: admin.id },
    ])
    stream.leave()
    await expect.poll(lines).toHaveLength(2)
    expect(lines()[1]).toMatchObject({
      msg: 'audit stream ended',
      reason: 'client_left',
      account_id: admin.id,
    })
  })
})

describe('the guards of the audit stream, coarse to fine', () => {
  const everythingWrong = '?nothing=1&acting=nobody'

  it('1. a credential', async () => {
    expect(await refused({}, everythingWrong)).toEqual([401, { error: 'authentication_required' }])
    expect(await refused(bearer(`secret_svc_token_${'a'.repeat(43)}`))).toEqual([
      401,
      { error: 'authentication_required' },
    ])
  })

  it('2. a token that reaches audit_log_list reaches the stream; another does not', async () => {
    const scopes = [{ kind: 'read_only' as const }, { kind: 'methods' as const, methods: ['audit_log_list'] }]
    for (const scope of scopes) await opened((await tokenOf(test, admin, scope)).headers)
    const { headers } = await tokenOf(test, admin, { kind: 'methods', methods: ['cell_list'] })
    expect(await refused(headers, everythingWrong)).toEqual([
      403,
      { error: 'token_scope_required', required_scope: 'surface:audit_stream' },
    ])
    const { headers: users } = await tokenOf(test, user, { kind: 'read_only' })
    expect((await refused(users))[1]).toMatchObject({ error: 'insufficient_permissions' })
  })

  const issue = (path: string, code: string) => ({ path: [path], code, message: expect.any(String) })
  it.each([
    ['?acting=', issue('acting', 'invalid_format')],
    ['?acting=nobody', issue('acting', 'invalid_format')],
    ['?after=', issue('after', 'invalid_format')],
    ['?after=-1', issue('after', 'invalid_format')],
    ['?after=1.5', issue('after', 'invalid_format')],
    ['?after=9007199254740992', issue('after', 'too_big')],
    ['?after=1&after=2', issue('after', 'invalid_value')],
    ['?nothing=1', issue('nothing', 'unrecognized_keys')],
  ])('3. a query of its own keys, whoever asks: %s', async (query, found) => {
    for (const { cookie } of [admin, user])
      expect(await refused({ cookie }, query)).toEqual([
        400,
        { error: 'invalid_query_params', issues: [found] },
      ])
  })

  it.each(['', 'x', '-1', '1, 2', '1e3', '99999999999999999'])(
    '3. and a Last-Event-ID that is a number of the log: "%s"',
    async (id) => {
      const [status, body] = await refused({ cookie: admin.cookie, 'last-event-id': id }, '?after=1')
      expect([status, (body as { error: string }).error]).toEqual([400, 'invalid_query_params'])
      expect(body).toMatchObject({ issues: [{ path: ['Last-Event-ID'] }] })
    },
  )

  it('4. an actor of the account, chosen where it has several', async () => {
    const two = await test.account()
    const second = await test.actor(two.id, 'second')
    await test.roleGrant({ actor_id: second, role: 'admin' })
    const cookie = { cookie: two.cookie }
    const [status, body] = await refused(cookie)
    expect([status, body]).toMatchObject([400, { error: 'actor_required', available: [{}, { id: second }] }])
    const foreign = [400, { error: 'actor_not_on_account' }]
    expect(await refused(cookie, `?acting=${admin.actor_id}`)).toEqual(foreign)
    expect((await refused(cookie, `?acting=${two.actor_id}`))[0]).toBe(403)
    await opened(cookie, `?acting=${second}`)
  })

  it('5. its admin role, global and active: without it nothing is replayed', async () => {
    const expected = [403, { error: 'insufficient_permissions', required_roles: ['admin'] }]
    expect(await refused({ cookie: user.cookie, 'last-event-id': '0' })).toEqual(expected)
    const former = await test.account({ roles: ['admin'] })
    await test.service.app.db.run(sql`
      update role_grant set expires_at = now() - interval '1 second' where actor_id = ${former.actor_id}::uuid`)
    expect(await refused({ cookie: former.cookie })).toEqual(expected)
  })
})

import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, dataOf, rpc, send } from '../../test/helpers/http.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { toUrl } from '../testing/cluster.ts'
import { type TestOptions, testService } from '../testing/index.ts'

async function service(options: TestOptions = {}) {
  const test = await testService(options)
  onTestFinished(() => test.close())
  return { ...test, get: (path: string, headers = {}) => send(test.url, { path, headers }) }
}

const live = ['/health', '/health/live']
const ready = ['/ready', '/health/ready']
const serving = '/health/serving'

describe('health and readiness', () => {
  it('say yes while the service serves', async () => {
    const { get } = await service()
    for (const path of live) expect((await get(path)).json).toEqual({ status: 'ok' })
    for (const path of ready) expect((await get(path)).json).toEqual({ ready: true })
    expect((await get(serving)).json).toEqual({ status: 'ok' })
  })

  it('health asks no database, and probes that come together ask once', async () => {
    const statements: string[] = []
    const { get } = await service({ onStatement: (text) => void statements.push(text) })
    statements.length = 0
    await Promise.all(live.map((path) => get(path)))
    expect(statements).toEqual([])
    await Promise.all(Array.from({ length: 50 }, () => get('/ready')))
    expect(statements).toHaveLength(1)
  })

  it('readiness names a lost column by its reason only; the log has the name', async () => {
    const captured = capturedLog()
    const test = await service({ log: captured.log })
    await test.service.app.db.run(sql`alter table account drop column email_verified`)
    const reply = await test.get('/ready')
    expect([reply.status, reply.json]).toEqual([503, { error: 'schema_drift' }])
    expect((await test.get('/health')).status).toBe(200)
    expect((await test.get(serving)).json).toEqual({ error: 'schema_drift' })
    expect(captured.text()).toContain('account.email_verified')
  })

  it('a call that needs a lost column gets 503 while readiness says so; other calls go on', async () => {
    const typo = query({
      doc: 'Reads a column that never was.',
      auth: { account: 'none', actor: 'none' },
      output: z.unknown(),
      handler: (_input, { db }) => db.rows(sql`select nothing_of_the_kind from cell`),
    })
    const test = await service({ actions: { notes_typo: typo } })
    const { cookie } = await test.account()
    const asked = async (method: string, params: object) => {
      const { status, json } = await rpc(test.url, call(method, params), { cookie })
      return [status, (json as { error?: { data: object } }).error?.data]
    }
    expect(await asked('notes_typo', {})).toEqual([500, { reason: 'internal_error' }])
    await test.service.app.db.run(sql`alter table cell drop column path cascade`)
    await expect.poll(async () => (await test.get('/ready')).json).toEqual({ error: 'schema_drift' })
    const waits = { reason: 'service_unavailable', retry_after: expect.any(Number) }
    expect(await asked('cell_create', { data: {} })).toEqual([503, { ...waits, outcome: 'none' }])
    expect(await asked('cell_list', {})).toEqual([503, waits])
    expect(await asked('account_verify', {})).toEqual([200, undefined])
  })

  it('a call that needs a lost privilege gets 503 too', async () => {
    const database = await migratedDatabase()
    onTestFinished(database.drop)
    const owner = await database.open()
    const role = `writer_${(database.connection.database as string).slice(-8)}`
    await owner.query(`
      create role ${role} login; grant usage on schema cellkeep to ${role};
      grant all on all tables in schema cellkeep to ${role}`)
    const test = await testService({ database_url: toUrl({ ...database.connection, user: role }) })
    onTestFinished(async () => {
      await test.close()
      await owner.query(`drop owned by ${role}; drop role ${role}`)
    })
    const { cookie } = await test.account()
    await owner.query(`revoke insert on cell from ${role}`)
    const ready = async () => (await send(test.url, { path: '/ready' })).json
    await expect.poll(ready).toEqual({ error: 'schema_drift' })
    const reply = await rpc(test.url, call('cell_create', { data: {} }), { cookie })
    expect([reply.status, dataOf(reply)]).toMatchObject([503, { reason: 'service_unavailable' }])
  })
})

describe('a service that leaves', () => {
  it('first says so to readiness alone', async () => {
    const test = await service()
    test.service.leave('leaving')
    for (const path of [...ready, serving])
      expect(await test.get(path)).toMatchObject({ status: 503, json: { error: 'shutting_down' } })
    for (const path of live) expect((await test.get(path)).status).toBe(200)
    expect((await rpc(test.url, call('cell_list'))).status).toBe(200)
  })

  it('then refuses every request before looking at it, and ends its connection', async () => {
    const test = await service({ allowed_origins: ['https://app.example'] })
    const { cookie } = await test.account()
    test.service.leave('draining')
    const hostile = { origin: 'https://evil.example', cookie }
    const replies = await Promise.all([
      ...[...live, ...ready, '/nowhere', '/api/account/status'].map((path) => test.get(path)),
      test.get('/api/rpc', hostile),
      send(test.url, { method: 'POST', path: '/api/rpc', headers: { 'content-length': 1e9 } }),
      rpc(test.url, call('account_verify'), { cookie }),
      rpc(test.url, [call('account_verify')], { cookie }),
    ])
    for (const reply of replies) {
      expect([reply.status, reply.json]).toEqual([503, { error: 'shutting_down' }])
      expect(reply.headers).toMatchObject({ connection: 'close', 'x-request-id': expect.any(String) })
    }
  })
})

it('a service that drains does not go back to leaving, and knows no other phase', async () => {
  const test = await service()
  expect(() => test.service.leave('drain' as never)).toThrow("leave takes 'leaving' or 'draining'")
  expect((await test.get('/ready')).status).toBe(200)
  test.service.leave('draining')
  test.service.leave('leaving')
  expect((await test.get('/health')).status).toBe(503)
})

describe('the client address', () => {
  const ipOf = async (options: TestOptions, forwarded: string | string[]) => {
    const captured = capturedLog()
    const test = await service({ ...options, log: captured.log })
    for (let i = 0; i < 2; i++) await test.get('/health', { 'x-forwarded-for': forwarded })
    const warnings = captured.lines().filter(({ level }) => level === 'warn')
    return { ip: captured.lines().at(-1)?.ip, warnings: warnings.map(({ msg }) => msg) }
  }

  it('is the peer where it is not trusted, which is said once', async () => {
    expect(await ipOf({}, '1.2.3.4')).toEqual({
      ip: '127.0.0.1',
      warnings: [
        'X-Forwarded-For is ignored: its sender is not in CELLKEEP_TRUSTED_PROXIES (option trusted_proxies)',
      ],
    })
  })

  it('is what a trusted proxy added last, never what the client put before it', async () => {
    const trusted = { trusted_proxies: ['127.0.0.1', '10.0.0.0/8'] }
    expect(await ipOf(trusted, '6.6.6.6, ::ffff:1.2.3.4, 10.0.0.1')).toEqual({ ip: '1.2.3.4', warnings: [] })
    expect(await ipOf(trusted, ['6.6.6.6', '1.2.3.4'])).toEqual({ ip: '1.2.3.4', warnings: [] })
  })
})

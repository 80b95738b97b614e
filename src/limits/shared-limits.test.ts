import { afterAll, describe, expect, it } from 'vitest'
import { freshIp, type Reply, send } from '../../test/helpers/account-routes.ts'
import { pending } from '../../test/helpers/limiter-stores.ts'
import { stoppableCluster } from '../../test/helpers/stoppable-cluster.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { createPostgresLimiter } from './postgres-limiter.ts'

const options = {
  limit_store: 'postgres',
  trusted_proxies: ['127.0.0.1'],
  limit_login_ip: '5/900',
  limit_lookup: '40/900',
  limit_admin_read: '150/900',
  limit_cell_read: '20/900',
} as const
const one = await testService(options)
const two = await testService({ ...options, database_url: one.databaseUrl })
afterAll(async () => {
  await two.close()
  await one.close()
})

const password = 'a long password'
const nobody = '11111111-1111-1111-1111-111111111111'
const nodeOf = (i: number): TestService => (i % 2 === 0 ? one : two)
const login = (i: number, username: string, typed: string, ip: string): Promise<Reply> =>
  send(nodeOf(i), 'POST /login', { body: { username, password: typed }, ip })
const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const count = <T>(all: readonly T[], value: T): number => all.filter((each) => each === value).length

/** The outcomes of this many concurrent calls, alternating between the nodes. */
const outcomes = (calls: number, ada: TestAccount | undefined, method: string, params: object) =>
  Promise.all(
    times(calls, (i) =>
      nodeOf(i)
        .service.call(method, params, ada ? { headers: { cookie: ada.cookie } } : {})
        .then(
          () => 'ok',
          (error) => error.data.reason as string,
        ),
    ),
  )

describe('two nodes', () => {
  it('have one budget: failures on one node count on the other, and survive a restart', async () => {
    const ip = freshIp()
    for (let i = 0; i < 5; i++) expect((await login(i, `nobody${i}`, 'wrong', ip)).status).toBe(401)
    const restarted = await testService({ ...options, database_url: one.databaseUrl })
    for (const node of [one, two, restarted]) {
      const { status, json, headers } = await send(node, 'POST /login', {
        body: { username: 'nobody', password: 'wrong' },
        ip,
      })
      const { retry_after } = json as { retry_after: number }
      expect([status, headers['retry-after']]).toEqual([429, String(retry_after)])
      expect(retry_after > 800 && retry_after <= 900).toBe(true)
    }
    await restarted.close()
  })

  it('let exactly 5 of 20 parallel failures through', async () => {
    const ip = freshIp()
    const replies = await Promise.all(times(20, (i) => login(i, `nobody${i}`, 'wrong', ip)))
    const statuses = replies.map(({ status }) => status)
    expect([count(statuses, 401), count(statuses, 429)]).toEqual([5, 15])
  })

  it.each([
    ['exact', 'actor_lookup', { ids: [nobody] }, 40],
    ['counted in sub-windows', 'admin_account_list', {}, 150],
  ])('never exceed a budget that is %s, however many call at once', async (_how, method, params, most) => {
    const ada = await one.account({ roles: ['admin'] })
    const seen = await outcomes(2 * most, ada, method, params)
    expect([count(seen, 'ok'), count(seen, 'rate_limited')]).toEqual([most, most])
  })

  it('share the budget of an address that has no credential', async () => {
    const ada = await one.account()
    const { cell } = await ada.client.cell_create({ visibility: 'public', data: {} })
    const seen = await outcomes(30, undefined, 'cell_get', { id: cell.id })
    expect([count(seen, 'ok'), count(seen, 'rate_limited')]).toEqual([20, 10])
  })

  it('refund successes: 20 of them use up nothing, and one clears the account everywhere', async () => {
    const [ada, ip] = [await one.account(), freshIp()]
    for (let i = 0; i < 20; i++) expect((await login(i, ada.username, password, ip)).status).toBe(200)
    for (let i = 0; i < 9; i++)
      expect((await login(i, ada.username, 'wrong', freshIp())).status, `${i}`).toBe(401)
    expect((await login(1, ada.username, password, freshIp())).status).toBe(200)
    for (let i = 0; i < 10; i++)
      expect((await login(i, ada.username, 'wrong', freshIp())).status, `${i}`).toBe(401)
    expect((await login(0, ada.username, password, freshIp())).status).toBe(429)
  })

  it('send the same statements for an unknown name, so that round trips do not reveal it', async () => {
    const statements: string[] = []
    const node = await testService({
      ...options,
      database_url: one.databaseUrl,
      onStatement: (text) => void statements.push(text),
    })
    const ada = await node.account({ username: 'somebody' })
    const sent: string[][] = []
    for (const username of [ada.username, 'nobody_at_all']) {
      statements.length = 0
      const body = { username, password: 'wrong' }
      expect((await send(node, 'POST /login', { body, ip: freshIp() })).status).toBe(401)
      sent.push([...statements])
    }
    expect(sent[0]).toEqual(sent[1])
    expect(sent[0]?.filter((text) => text.includes('limiter_take'))).toHaveLength(3)
    await node.close()
  })

  it('admit 60 concurrent right passwords with a budget of 5', async () => {
    const [ada, ip] = [await one.account(), freshIp()]
    const replies = await Promise.all(times(60, (i) => login(i, ada.username, password, ip)))
    expect(
      count(
        replies.map(({ status }) => status),
        200,
      ),
    ).toBe(60)
  })

  it('admit no more wrong passwords than the budget, however many come at once', async () => {
    const ip = freshIp()
    const replies = await Promise.all(times(200, (i) => login(i, `nobody${i}`, 'wrong', ip)))
    const statuses = replies.map(({ status }) => status)
    expect([count(statuses, 401), count(statuses, 429)]).toEqual([5, 195])
  })

  it('store addresses, ids and digests, and nothing that was typed', async () => {
    await login(0, 'typed_username', 'wrong', '203.0.113.77')
    const rows = await one.service.app.db.rows<{ limiter: string; key: string }>(sql`
      select distinct limiter, key from limiter_charge`)
    expect(rows).toContainEqual({ limiter: 'rest login_ip', key: 'ip:203.0.113.77' })
    for (const { key } of rows)
      expect(key).toMatch(/^(ip:[\d.]+|(name:[0-9a-f]{64}|account:[0-9a-f-]{36})( ip:[\d.]+)?)$/)
  })
})

describe('a slot whose process died', () => {
  it('counts as a charge of the moment it was taken', async () => {
    const clock = { ms: 5_000_000 }
    const { db, log } = one.service.app
    const rule = { max: 2, windowMs: 900_000, leaseMs: 60_000 }
    const limiter = createPostgresLimiter({ db, log, name: 'lost slots', ...rule, now: () => clock.ms })
    const [lost] = [await limiter.hold('a'), await limiter.hold('a')]
    expect(await limiter.hold('a')).toEqual(pending)
    clock.ms += 60_000
    expect(await limiter.hold('a')).toEqual({ ok: false, retryAfter: 840 })
    clock.ms += 840_000
    expect((await limiter.charge('a')).ok).toBe(true)
    // The process did not die: its attempt was only slow, and its outcome still counts.
    if (lost.ok) await lost.charge()
    expect(await limiter.hold('a')).toEqual({ ok: false, retryAfter: 900 })
  })
})

describe('while the database is away', () => {
  it('nothing is admitted, an answer already given remains, and an unsettled slot still counts', async () => {
    const cluster = await stoppableCluster()
    const test = await testService({ ...options, database_url: cluster.url, limit_login_ip: '1/900' })
    const { limiters } = test.service.app
    const unavailable = { data: { reason: 'service_unavailable' } }
    const attempt = limiters.attempt([], async (hold) => {
      await hold.ip('login_ip', '203.0.113.1')
      await cluster.stop()
      return 'done'
    })
    expect(await attempt).toBe('done')
    await expect(limiters.takeIp('mine', '203.0.113.1')).rejects.toMatchObject(unavailable)
    await expect(limiters.clear('login_ip', ['ip:203.0.113.1'])).rejects.toMatchObject(unavailable)
    const reply = await send(test, 'POST /login', { body: { username: 'ada', password }, ip: freshIp() })
    expect([reply.status, reply.json]).toMatchObject([503, { error: 'service_unavailable' }])
    await cluster.start()
    await expect.poll(() => limiters.takeIp('mine', '203.0.113.2').then(() => 'back', String)).toBe('back')
    await expect(limiters.attempt([], (hold) => hold.ip('login_ip', '203.0.113.1'))).rejects.toMatchObject({
      data: { reason: 'rate_limited', retry_after: 1 },
    })
    await test.close()
    await cluster.remove()
  })
})

import pg from 'pg'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { call, rpc, send } from '../../test/helpers/http.ts'
import { stoppableCluster } from '../../test/helpers/stoppable-cluster.ts'
import { testService } from '../testing/index.ts'

const cluster = await stoppableCluster({ wal_level: 'replica' })
const test = await testService({ database_url: cluster.url, limit_store: 'postgres' })
const ada = await test.account()
afterAll(async () => {
  await test.close()
  await cluster.remove()
})

const login = () =>
  send(test.url, {
    path: '/api/account/login',
    method: 'POST',
    body: { username: ada.username, password: 'a long password' },
  })
const signedIn = { cookie: ada.cookie }
const wait = expect.toSatisfy((seconds: number) => Number.isInteger(seconds) && seconds >= 1 && seconds <= 10)

it('a server that became a standby is unavailable for writes, says when to try again, and serves once promoted', async () => {
  expect((await login()).status).toBe(200)
  await cluster.stop()
  await cluster.demote()
  await cluster.start()

  const get = async (path: string) => {
    const { status, json } = await send(test.url, { path })
    return [status, json]
  }
  await expect.poll(() => get('/health/ready')).toEqual([503, { error: 'db_read_only' }])
  expect(await rpc(test.url, call('account_verify'), signedIn)).toMatchObject({ status: 503 })
  await expect(testService({ database_url: cluster.url })).rejects.toMatchObject({
    reason: 'db_read_only',
    exitCode: 3,
  })
  expect(await get('/health/serving')).toEqual([200, { status: 'ok' }])
  const created = await rpc(test.url, call('cell_create', { data: {} }), signedIn)
  expect(created.status).toBe(503)
  expect(created.json).toMatchObject({
    error: { data: { reason: 'service_unavailable', retry_after: wait, outcome: 'none' } },
  })
  const refused = await login()
  expect([refused.status, refused.json]).toEqual([
    503,
    { error: 'service_unavailable', retry_after: wait, outcome: 'none' },
  ])
  expect(refused.headers['retry-after']).toBe(String((refused.json as { retry_after: number }).retry_after))

  const client = new pg.Client(cluster.url)
  await client.connect()
  await client.query('select pg_promote()')
  await client.end()
  await expect.poll(async () => (await login()).status).toBe(200)
  expect((await rpc(test.url, call('cell_create', { data: {} }), signedIn)).status).toBe(200)
  await expect.poll(() => get('/health/ready')).toEqual([200, { ready: true }])
})

it('a server that hangs does not hold up what balancers ask', async () => {
  const get = (path: string) => send(test.url, { path })
  await expect.poll(async () => (await get('/health/ready')).status).toBe(200)
  await cluster.freeze()
  onTestFinished(() => cluster.thaw())
  const asked = async () => {
    let isReadyTold = false
    const ready = get('/health/ready').then(() => {
      isReadyTold = true
    })
    const { status } = await get('/health/serving')
    // If both had waited for the same, readiness would have been answered by now.
    for (let n = 0; n < 5; n++) await get('/health/live')
    const seen = [status, isReadyTold]
    await ready
    return seen
  }
  await expect.poll(asked).toEqual([200, false])
})

import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, it } from 'vitest'
import { capturedLog } from '../../../test/helpers/captured-log.ts'
import { call, dataOf, rpc, send } from '../../../test/helpers/http.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { openSocket } from '../../../test/helpers/sockets.ts'
import { stoppableCluster } from '../../../test/helpers/stoppable-cluster.ts'
import { withoutRepeats } from '../../log/repeats.ts'
import { testService } from '../../testing/index.ts'

const cluster = await stoppableCluster()
afterAll(cluster.remove)
const captured = capturedLog()
const test = await serviceForFile({
  database_url: cluster.url,
  log: withoutRepeats(captured.log),
  serving_grace_s: 3,
  database_wait_ms: 500,
  // A fast machine creates more cells than the budget allows.
  limit_cell_create: 'off',
})
const ada = await test.account()
const health = async () => {
  const paths = ['/health/live', '/health/ready', '/health/serving']
  return await Promise.all(paths.map(async (path) => (await send(test.url, { path })).status))
}

it('an outage under load: balancers keep the node for a while, sockets stay, and the log is not flooded', async () => {
  const socket = await openSocket(test.url, { cookie: ada.cookie, origin: test.url })
  // The socket reads its credential once more before its first call.
  expect(await socket.call('account_verify')).toMatchObject({ result: { id: ada.id } })
  expect(await health()).toEqual([200, 200, 200])
  let isOver = false
  const statuses = new Set<number>()
  const callers = Array.from({ length: 10 }, async () => {
    while (!isOver) {
      const { status } = await rpc(test.url, call('cell_create', { data: {} }), { cookie: ada.cookie })
      statuses.add(status)
      // Calls that are refused at once must not keep the processor busy for the whole outage.
      await delay(5)
    }
  })
  const before = captured.lines().length
  await cluster.stop()
  await expect.poll(health).toEqual([200, 503, 200])
  await expect.poll(health).toEqual([200, 503, 503])
  expect(await socket.call('account_verify')).toMatchObject({
    error: { data: { reason: 'service_unavailable' } },
  })
  const lines = () => captured.lines().slice(before)
  await expect.poll(() => lines().filter(({ msg }) => msg === 'request').length).toBeGreaterThan(200)
  await cluster.start()
  await expect.poll(health).toEqual([200, 200, 200])
  isOver = true
  await Promise.all(callers)
  expect(await socket.call('account_verify')).toMatchObject({ result: { id: ada.id } })
  expect(socket.order).toEqual(['reply', 'reply', 'reply'])
  await socket.close()

  expect([...statuses].sort()).toEqual([200, 503])
  const others = lines().filter(({ msg }) => msg !== 'request')
  expect(JSON.stringify(others)).not.toContain('too many calls')
  expect(others.length).toBeLessThan(40)
})

it('a node set not to wait refuses calls at once while there is no primary', async () => {
  await using hasty = await testService({ database_url: cluster.url, database_wait_ms: 0 })
  await cluster.stop()
  const reply = await rpc(hasty.url, call('cell_create', { data: {} }), { cookie: ada.cookie })
  // The breaker opens after 2 s at the earliest.
  expect(hasty.service.app.db.primary.isOpen).toBe(false)
  expect([reply.status, dataOf(reply)]).toMatchObject([503, { outcome: 'none' }])
  expect(reply.headers['retry-after']).toMatch(/^([1-9]|10)$/)
  await cluster.start()
})

import { afterAll, expect, it } from 'vitest'
import { openStream, streamPath, writeRows } from '../../test/helpers/audit-streams.ts'
import { send } from '../../test/helpers/http.ts'
import { stoppableCluster } from '../../test/helpers/stoppable-cluster.ts'
import { testService } from '../testing/index.ts'

const cluster = await stoppableCluster()
const test = await testService({ database_url: cluster.url, audit_stream: true })
const admin = await test.account({ roles: ['admin'] })
afterAll(async () => {
  await test.close()
  await cluster.remove()
})

it('without its database a stream is refused as unavailable, and one that is open stays and misses nothing', async () => {
  const headers = { cookie: admin.cookie }
  const stream = await openStream(test, headers)
  await writeRows(test, 1)
  const [before] = await stream.take(1)
  await cluster.stop()
  const refused = await send(test.url, { path: streamPath, headers })
  expect([refused.status, refused.json]).toMatchObject([503, { error: 'service_unavailable' }])
  expect(refused.headers['set-cookie']).toBeUndefined()
  await cluster.start()
  // A node that has been refused for a while looks for its database at most once a second.
  await expect.poll(() => writeRows(test, 2).catch(() => 0)).toBe(2)
  const seq = before?.id as number
  expect(await stream.take(2)).toMatchObject([{ id: seq + 1 }, { id: seq + 2 }])
})

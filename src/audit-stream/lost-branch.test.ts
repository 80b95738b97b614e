import pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { type OpenStream, openStream, type StreamBlock, writeRows } from '../../test/helpers/audit-streams.ts'
import { stoppableCluster } from '../../test/helpers/stoppable-cluster.ts'
import { sql } from '../db/db.ts'
import { type TestService, testService } from '../testing/index.ts'

const [cluster, kept] = await Promise.all([stoppableCluster({ wal_level: 'replica' }), stoppableCluster()])
await kept.stop()
const options = { database_url: cluster.url, audit_stream: true }
const nodes = [await testService(options), await testService(options)] as const
const [near] = nodes
const { db } = near.service.app
afterAll(async () => {
  for (const node of nodes) await node.close()
  await Promise.all([cluster.remove(), kept.remove()])
})
const root = await near.account({ roles: ['admin'] })

it('after a fail-over that lost rows, streams get all rows of the new history and no number a second time', async () => {
  const follow = (node: TestService, query = ''): Promise<OpenStream> =>
    openStream(node, { cookie: root.cookie }, `?acting=${root.actor_id}${query}`)
  const streams = await Promise.all(nodes.map((node) => follow(node)))
  const written = async (count: number): Promise<StreamBlock[]> => {
    await expect.poll(() => writeRows(near, count).catch(() => 0)).toBe(count)
    const [blocks, others] = await Promise.all(streams.map((stream) => stream.take(count)))
    expect(others?.map(({ text }) => text)).toEqual(blocks?.map(({ text }) => text))
    return blocks ?? []
  }
  const before = await written(10)
  await cluster.stop()
  await kept.replaceBy(cluster)
  await cluster.start()
  const lost = await written(200)
  await cluster.stop()
  await cluster.replaceBy(kept)
  await cluster.demote()
  await cluster.start()
  const standby = new pg.Client(cluster.url)
  await standby.connect()
  expect((await standby.query('select pg_promote() as done')).rows).toEqual([{ done: true }])
  await standby.end()

  const replays = await Promise.all(nodes.map((node) => follow(node, `&after=${lost[99]?.id}`)))
  const fresh = await written(200)
  for (const replay of replays) {
    const texts = (await replay.take(200)).map(({ text }) => text.replace(/^retry: .*\n/, ''))
    expect(texts).toEqual(fresh.map(({ text }) => text))
  }
  const numbers = [before, lost, fresh].map((blocks) => blocks.map(({ id }) => id))
  const [first, last, next] = [numbers[0]?.at(-1), numbers[1]?.at(-1), numbers[2]?.[0]] as number[]
  expect(last).toBe((first as number) + 200)
  expect(next).toBe((first as number) + 1_048_576 + 1)
  expect(numbers.flat()).toEqual(numbers.flat().toSorted((a, b) => a - b))
  expect(new Set(numbers.flat()).size).toBe(410)
  // The numbers jump only once per timeline.
  const [after] = await written(1)
  expect(after?.id).toBe((next as number) + 200)
  for (const stream of [...streams, ...replays]) stream.leave()
})

it('where the timeline cannot be read, the numbers go on as they were', async () => {
  const { seq } = await db.one<{ seq: number }>(sql`select seq from audit_position`)
  await db.run(sql`create or replace function server_timeline() returns text language sql return null::text`)
  await writeRows(near, 1)
  await db.run(sql`select audit_number()`)
  expect(await db.one(sql`select seq from audit_position`)).toEqual({ seq: seq + 1 })
})

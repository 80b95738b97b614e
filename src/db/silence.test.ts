import type { Socket } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { openDatabase, sql } from './db.ts'

/** Connections on which nothing arrives at one of the ends any more, as when a firewall has forgotten them. */
const lost = { client: new Set<Socket>(), server: new Set<Socket>() }
/** The client ends of the connections for short reads, oldest first. */
const readers: Socket[] = []
const database = await migratedDatabase()
const proxy = await postgresProxy(database.connection, (near, far) => {
  near.on('data', (chunk: Buffer) => {
    if (chunk.includes('plan_cache_mode')) readers.push(near)
    if (!lost.server.has(near)) far.write(chunk)
  })
  far.on('data', (chunk) => void (lost.client.has(near) || near.write(chunk)))
})
const statements: string[] = []
const db = openDatabase({
  connection: proxy.connection,
  poolMax: 2,
  statementTimeoutMs: 10_000,
  onError: () => {},
  onStatement: (text) => statements.push(text),
})
afterAll(async () => {
  await db.close()
  await proxy.close()
  await database.drop()
})

it.each(['client', 'server'] as const)(
  'reads are answered on another connection when nothing arrives at the %s of theirs',
  async (end) => {
    await Promise.all([1, 2].map(() => db.readOnly.point(sql`select 1`)))
    await expect.poll(() => readers.filter((one) => !one.destroyed).length).toBe(2)
    const [first] = readers.filter((one) => !one.destroyed) as [Socket]
    lost[end].add(first)
    const reads = Array.from({ length: 20 }, (_, n) => db.readOnly.point(sql`select ${n}::int as n`))
    expect(await Promise.all(reads)).toEqual(reads.map((_, n) => [{ n }]))
    expect(first.destroyed).toBe(true)
  },
)

it('a read on which the server works is neither cut nor repeated', async () => {
  statements.length = 0
  const before = readers.length
  expect(await db.readOnly.point(sql`select 1 as n from pg_sleep(3)`)).toEqual([{ n: 1 }])
  expect([statements.length, readers.length]).toEqual([1, before])
})

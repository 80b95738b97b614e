import type { Socket } from 'node:net'
import { afterAll, beforeEach, expect, it, onTestFinished } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { openDatabase, sql } from './db.ts'
import { clientConfig } from './servers/connection.ts'

/** Connections on which nothing arrives at one of the ends any more, as when a firewall has forgotten them. */
const lost = { client: new Set<Socket>(), server: new Set<Socket>() }
const open = new Set<Socket>()
/** How each connection began. */
const starts: string[] = []
/** Those for short reads. */
const readers = new Set<Socket>()
/** Nothing arrives at this end any more of a connection on which this command is sent. */
const losing: { command?: string; end: 'client' | 'server' } = { end: 'client' }
/** How often the server was asked which connections it hears nothing on. */
let asked = 0
/** The connection of the statement with this text gets its answer slowly. */
const slow = { text: '', bytes: 0 }
const database = await migratedDatabase()
const proxy = await postgresProxy(database.connection, (near, far) => {
  let isSlow = false
  open.add(near)
  near.on('close', () => {
    open.delete(near)
    readers.delete(near)
  })
  near.once('data', (chunk: Buffer) => starts.push(chunk.toString('latin1')))
  near.on('data', (chunk: Buffer) => {
    if (chunk.includes('plan_cache_mode')) readers.add(near)
    if (chunk.includes('wait_event_type')) asked += 1
    if (losing.command && chunk.includes(`${losing.command}\0`)) lost[losing.end].add(near)
    if (slow.text && chunk.includes(slow.text)) isSlow = true
    if (!lost.server.has(near)) far.write(chunk)
  })
  far.on('data', (chunk: Buffer) => {
    if (!lost.client.has(near)) near.write(chunk)
    if (!isSlow) return
    slow.bytes += chunk.length
    far.pause()
    setTimeout(() => far.resume(), 40)
  })
})
const statements: string[] = []
const db = openDatabase({
  connection: proxy.connection,
  poolMax: 4,
  statementTimeoutMs: 10_000,
  onError: () => {},
  onStatement: (text) => statements.push(text),
})
await db.run(sql`create table note (n int)`)
beforeEach(() => {
  statements.length = 0
})
afterAll(async () => {
  await db.close()
  await proxy.close()
  await database.drop()
})

it.each(['client', 'server'] as const)(
  'short reads are answered on another connection when nothing arrives at the %s of theirs',
  async (end) => {
    await db.point(sql`select 1`)
    await db.readOnly.point(sql`select 1`)
    await expect.poll(() => readers.size).toBe(2)
    const [first] = readers
    lost[end].add(first as Socket)
    const reads = Array.from({ length: 20 }, (_, n) =>
      (n % 2 ? db : db.readOnly).point(sql`select ${n}::int as n`),
    )
    expect(await Promise.all(reads)).toEqual(reads.map((_, n) => [{ n }]))
    expect(first?.destroyed).toBe(true)
  },
)

it('when all connections are lost without a sign, reads and transactions are carried out on new ones', async () => {
  const write = (n: number) => db.transaction((tx) => tx.run(sql`insert into note values (${n}::int)`))
  await Promise.all([1, 2].map((n) => Promise.all([write(n), db.readOnly.rows(sql`select from note`)])))
  for (const one of open) lost.server.add(one)
  await Promise.all([3, 4].map((n) => Promise.all([write(n), db.readOnly.rows(sql`select from note`)])))
  expect(await db.readOnly.rows(sql`select n from note order by n`)).toEqual([1, 2, 3, 4].map((n) => ({ n })))
})

it.each(['client', 'server'] as const)(
  'a transaction whose COMMIT is lost on the way to or from the %s ends soon, and its outcome is unknown',
  async (end) => {
    Object.assign(losing, { command: 'commit', end })
    onTestFinished(() => void delete losing.command)
    const lone = await db
      .transaction((tx) => tx.run(sql`insert into note values (5)`))
      .catch((error: unknown) => error)
    expect(lone).toMatchObject({ data: { reason: 'service_unavailable', outcome: 'unknown' } })
    expect(String((lone as Error).cause)).toMatch(/hears nothing/)
  },
)

it('work that fails does so soon, even if its ROLLBACK is lost', async () => {
  losing.command = 'rollback'
  onTestFinished(() => void delete losing.command)
  const before = asked
  const fails = db.transaction(async (tx) => {
    await tx.run(sql`insert into note values (6)`)
    throw new Error('the work failed')
  })
  await expect(fails).rejects.toThrow('the work failed')
  expect(asked).toBeGreaterThan(before)
  delete losing.command
  expect(await db.readOnly.rows(sql`select from note where n = 6`)).toEqual([])
})

it('a read on which the server works is neither cut nor repeated', async () => {
  expect(await db.readOnly.point(sql`select 1 as n from pg_sleep(3)`)).toEqual([{ n: 1 }])
  expect(statements).toHaveLength(1)
})

it('a large result that waits for another one to arrive is neither cut nor repeated', async () => {
  slow.text = 'slowly'
  const large = (text: string) =>
    sql`select repeat(md5(n::text), 100) as ${sql.raw(text)} from generate_series(1, 2000) n`
  const slowly = db.readOnly.rows(large('slowly'))
  await expect.poll(() => slow.bytes).toBeGreaterThan(524_288)
  const results = await Promise.all([slowly, db.readOnly.rows(large('meanwhile'))])
  expect(results.map(({ length }) => length)).toEqual([2000, 2000])
  expect(statements).toHaveLength(2)
})

it('closes although nothing arrives at either end any more', async () => {
  const own = openDatabase({
    connection: proxy.connection,
    poolMax: 4,
    statementTimeoutMs: 10_000,
    onError: () => {},
  })
  const others = new Set(open)
  await Promise.all([own.rows(sql`select 1`), own.readOnly.point(sql`select 1`)])
  for (const one of [...open].filter((one) => !others.has(one))) {
    lost.client.add(one)
    lost.server.add(one)
    one.pause()
    onTestFinished(() => void one.destroy())
  }
  await own.close()
})

it('every connection asks the server to end it within a minute if it is lost, and the URL may ask for something else', async () => {
  expect(starts.length).toBeGreaterThan(4)
  for (const start of starts) expect(start).toMatch(/tcp_keepalives_idle=30 .*interval=10 .*count=3/)
  // Without this, one that is sending an answer would not end it.
  const limited = starts.filter((start) => start.includes('statement_timeout=10000'))
  expect(limited.length).toBeGreaterThan(4)
  for (const start of limited) expect(start).toContain('tcp_user_timeout=60000')
  const { options } = clientConfig({ options: '-c tcp_keepalives_idle=5' })
  expect(options).toMatch(/tcp_keepalives_idle=30.*tcp_keepalives_idle=5/)
})

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { openDatabase, sql } from './db.ts'

const database = await migratedDatabase()
const { host, port, user, database: name, schema } = database.connection
let isAway = true
/** When connections were asked for, and how many were opened at the same time at most. */
const asked: number[] = []
const seen = { opening: 0, most: 0 }
const server = createServer((near: Socket) => {
  near.on('error', () => {})
  asked.push(performance.now())
  if (isAway) return near.destroy()
  seen.opening += 1
  seen.most = Math.max(seen.most, seen.opening)
  const far = connect(`${host}/.s.PGSQL.${port}`)
  near.pipe(far).pipe(near)
  // Answered to log in, and then to the question of admission.
  far.once('data', () => far.once('data', () => void seen.opening--))
  far.on('error', () => near.destroy())
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const errors: string[] = []
const db = openDatabase({
  connection: {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    user,
    database: name,
    schema,
  },
  poolMax: 10,
  statementTimeoutMs: 10_000,
  waitMs: 3_000,
  onError: (_error, _what, event = 'db_lost') => errors.push(event),
})
afterAll(async () => {
  await db.close()
  server.close()
  await database.drop()
})

const read = () => db.readOnly.rows<{ n: number }>(sql`select 1 as n`)

it('while there is no primary a thousand calls wait and the others are refused at once; then all are, with one probe at a time; then all goes on', async () => {
  const first = read().catch(() => 'refused')
  await expect.poll(() => db.primary.isAway).toBe(true)
  const refused: unknown[] = []
  const calls = Array.from({ length: 10_000 }, () => read().catch((error) => refused.push(error)))
  await expect.poll(() => refused.length).toBe(9_001)
  expect([db.primary.inside, db.primary.isOpen]).toEqual([1_000, false])
  await Promise.all(calls)
  expect(refused).toHaveLength(10_000)
  expect(new Set(refused).size).toBe(10_000)
  expect(refused[0]).toMatchObject({
    data: { reason: 'service_unavailable', retry_after: expect.any(Number) },
  })
  expect(await first).toBe('refused')
  expect(db.primary.trouble).toBe('db_unreachable')
  expect(errors).toEqual(['db_lost', 'breaker_open'])

  asked.length = 0
  const began = performance.now()
  for (let n = 0; n < 200; n++) await read().catch(() => {})
  // Not one of them waited.
  expect(performance.now() - began).toBeLessThan(3_000)
  await expect.poll(() => asked.length).toBeGreaterThanOrEqual(3)
  for (const [n, at] of asked.slice(1).entries()) expect(at - (asked[n] ?? 0)).toBeGreaterThan(240)

  isAway = false
  await expect.poll(() => db.primary.isOpen).toBe(false)
  const answers = await Promise.all(Array.from({ length: 2_000 }, read))
  expect(answers.every(([row]) => row?.n === 1)).toBe(true)
  // Four of the pool, and those that reads share.
  expect(seen.most).toBeLessThanOrEqual(6)
  expect(db.load().open).toBeLessThanOrEqual(10)
  expect(db.primary.inside).toBe(0)
})

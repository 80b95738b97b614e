import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { migratedDatabase } from '../../../test/fresh-database.ts'
import { openDatabase, sql } from '../db.ts'

const database = await migratedDatabase()
const { host, port, user, database: name, schema } = database.connection
let isAway = true
let isSilent = false
const near = new Set<Socket>()
/** How many connections were asked for, and how many at most were being opened at the same time. */
const seen = { asked: 0, opening: 0, most: 0 }
const server = createServer((one: Socket) => {
  near.add(one.on('error', () => {}).on('close', () => near.delete(one)))
  seen.asked += 1
  if (isAway) return one.destroy()
  if (isSilent) return one.resume()
  seen.opening += 1
  seen.most = Math.max(seen.most, seen.opening)
  const far = connect(`${host}/.s.PGSQL.${port}`)
  one.pipe(far).pipe(one)
  // The server answers the login first, and then the question of admission.
  far.once('data', () => far.once('data', () => void seen.opening--))
  far.on('error', () => one.destroy())
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const errors: string[] = []
/** Called when a connection is lost or cannot be had. */
let onLost = () => {}
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
  onError: (_error, _what, event = 'db_lost') => {
    errors.push(event)
    if (event === 'db_lost') onLost()
  },
})
afterAll(async () => {
  await db.close()
  server.close()
  await database.drop()
})

const read = () => db.readOnly.rows<{ n: number }>(sql`select 1 as n`)

it('while there is no primary a thousand calls wait and the others are refused at once; then all are, with one probe at a time; then all goes on', async () => {
  const lost = new Promise<void>((resolve) => {
    onLost = resolve
  })
  const first = read().catch(() => 'refused')
  await lost
  const refused: unknown[] = []
  const calls = Array.from({ length: 10_000 }, () => read().catch((error) => refused.push(error)))
  // Before any timer fires, however busy the machine is.
  await new Promise<void>((resolve) => process.nextTick(resolve))
  expect([refused.length, db.primary.inside, db.primary.isOpen]).toEqual([9_001, 1_000, false])
  await Promise.all(calls)
  expect(refused).toHaveLength(10_000)
  expect(new Set(refused).size).toBe(10_000)
  expect(refused[0]).toMatchObject({
    data: { reason: 'service_unavailable', retry_after: expect.any(Number) },
  })
  expect(await first).toBe('refused')
  expect(db.primary.trouble).toBe('db_unreachable')
  // Calls may wait as long as the breaker does.
  await expect.poll(() => errors).toEqual(['db_lost', 'breaker_open'])

  seen.asked = 0
  const began = performance.now()
  let hasWaited = false
  setImmediate(() => {
    hasWaited = true
  })
  for (let n = 0; n < 200; n++) await read().catch(() => {})
  expect(hasWaited).toBe(false)
  await expect.poll(() => seen.asked).toBeGreaterThanOrEqual(3)
  // Attempts are at least 250 ms apart, but each may be noticed late, and one may already have been under way.
  expect(seen.asked).toBeLessThanOrEqual(2 + (performance.now() - began) / 250)

  isAway = false
  await expect.poll(() => db.primary.isOpen).toBe(false)
  const answers = await Promise.all(Array.from({ length: 200 }, read))
  expect(answers.every(([row]) => row?.n === 1)).toBe(true)
  // Four of the pool, and those that reads share.
  expect(seen.most).toBeLessThanOrEqual(6)
  expect(db.load().open).toBeLessThanOrEqual(10)
  expect(db.primary.inside).toBe(0)
})

it('a server that says nothing counts as away from when it was asked, so that no call waits twice as long', async () => {
  // A connection that is still being opened would fail at once.
  await expect.poll(() => seen.opening).toBe(0)
  isSilent = true
  errors.length = 0
  const lost = [...near]
  for (const one of lost) one.destroy()
  // While a connection is believed to be open, nothing counts as missing.
  await expect.poll(() => lost.filter((one) => near.has(one)).length + db.load().open).toBe(0)
  let late: NodeJS.Timeout | undefined
  onLost = () => {
    clearTimeout(late)
    late = setTimeout(() => errors.push('2 s later'), 2_000)
  }
  await expect(read()).rejects.toMatchObject({ data: { reason: 'service_unavailable' } })
  await expect.poll(() => db.primary.isOpen).toBe(true)
  // The attempt has used up all of the time; half a second remains for connections that are open.
  expect(errors[errors.indexOf('breaker_open') - 1]).toBe('db_lost')
  isSilent = false
  await expect.poll(() => read().catch(() => [])).toHaveLength(1)
})

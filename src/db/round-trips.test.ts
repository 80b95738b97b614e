import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import pg from 'pg'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { openDatabase, sql } from './db.ts'

/** How often the client waits for the server: all messages sent before an answer are one round trip. */

/** After this long without an answer a client has sent everything that it will send. */
const holdMs = 30

let trips = 0
let close: () => Promise<void>
const database = await migratedDatabase()
const { host, port, user, database: name, password } = new pg.Client(database.connection)
const server = createServer((near) => {
  const far = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
  let hasAnswered = true
  near.on('data', (chunk) => {
    if (hasAnswered) trips += 1
    hasAnswered = false
    far.write(chunk)
  })
  far.on('data', (chunk) =>
    setTimeout(() => {
      hasAnswered = true
      near.write(chunk)
    }, holdMs),
  )
  near.on('close', () => far.destroy()).on('error', () => {})
  far.on('close', () => near.destroy()).on('error', () => {})
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const connection = {
  host: '127.0.0.1',
  port: (server.address() as AddressInfo).port,
  user: user ?? '',
  database: name ?? '',
  ...(password && { password }),
}
const db = openDatabase({ connection, poolMax: 1, statementTimeoutMs: 10_000, onError: () => {} })
close = async () => {
  await db.close()
  server.close()
  await once(server, 'close')
}
await db.run(sql`create table note (text text)`)
afterAll(async () => {
  await close()
  await database.drop()
})
beforeEach(() => {
  trips = 0
})

const insert = sql`insert into note values ('x')`
const last = (report: string) => sql`select ${sql.raw(report)} as report`
const mutate = (report: string) =>
  db.transaction(async (tx) => {
    tx.beforeCommit(
      () => last(report),
      () => {},
    )
    await tx.run(insert)
  })

it('a read takes one, and so does a writing statement', async () => {
  await db.readOnly.rows(sql`select from note`)
  expect(trips).toBe(1)
  await db.run(insert)
  expect(trips).toBe(2)
  // The first read opens each of the two shared connections.
  await Promise.all([1, 2].map(() => db.readOnly.point(sql`select 1`)))
  trips = 0
  await db.readOnly.point(sql`select from note`)
  expect(trips).toBe(1)
})

it('a transaction takes one for each statement of its work, and one for its last statement with COMMIT', async () => {
  await mutate('null')
  expect(trips).toBe(2)
})

it('after a failed last statement it takes one more, until one succeeds', async () => {
  await mutate('missing()')
  trips = 0
  await mutate('null')
  expect(trips).toBe(3)
  await mutate('null')
  expect(trips).toBe(5)
  const rows = await db.readOnly.first<{ n: number }>(sql`select count(*)::int as n from note`)
  expect(rows).toEqual({ n: 5 })
})

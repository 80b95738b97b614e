import { afterAll, beforeEach, expect, it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { byRoundTrips, postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { openDatabase, type Sql, sql } from './db.ts'

let trips = 0
const database = await migratedDatabase()
const proxy = await postgresProxy(
  database.connection,
  byRoundTrips(() => (_sent, isNew) => {
    if (isNew) trips += 1
  }),
)
const { connection } = proxy
const db = openDatabase({ connection, poolMax: 1, statementTimeoutMs: 10_000, onError: () => {} })
await db.run(sql`create table note (text text)`)
afterAll(async () => {
  await db.close()
  await proxy.close()
  await database.drop()
})
beforeEach(() => {
  trips = 0
})

const insert = sql`insert into note values ('x')`
const last = (report: string) => sql`select ${sql.raw(report)} as report`
const mutate = (report: string) =>
  db.transaction(async (tx) => {
    tx.beforeCommit(last(report), () => {})
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

it('a transaction that is one statement takes one', async () => {
  await db.transaction(async (tx) => {
    await tx.alone(sql`${insert} returning text`, () => false)
  })
  expect(trips).toBe(1)
})

it('after a failed last statement it takes one more, until one succeeds', async () => {
  await mutate('missing()')
  trips = 0
  await mutate('null')
  expect(trips).toBe(3)
  await mutate('null')
  expect(trips).toBe(5)
  const rows = await db.readOnly.first<{ n: number }>(sql`select count(*)::int as n from note`)
  expect(rows).toEqual({ n: 6 })
})

it('statements of a transaction that are sent together take one, and all reject with the error of the first that fails', async () => {
  let answers: unknown
  const together = (...queries: Sql[]) =>
    db.transaction(async (tx) => {
      answers = await Promise.allSettled(queries.map((query) => tx.run(query)))
    })
  await together(insert, sql`delete from note`, sql`select from note`)
  expect(trips).toBe(2)
  const failing = together(sql`select missing()`, insert, insert)
  const missing = { code: '42883' }
  await expect(failing).rejects.toMatchObject(missing)
  expect(answers).toMatchObject([{ reason: missing }, { reason: missing }, { reason: missing }])
})

import pg from 'pg'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { openDatabase, type Sql, sql } from './db.ts'

const fresh = await migratedDatabase()
const onError = () => {}
const db = openDatabase({ connection: fresh.connection, poolMax: 1, statementTimeoutMs: 10_000, onError })
afterAll(async () => {
  await db.close()
  await fresh.drop()
})

/** Descriptions of columns that the driver has read. */
let described = 0
const { emit } = pg.Connection.prototype
pg.Connection.prototype.emit = function (event, ...args) {
  if (event === 'rowDescription') described += 1
  return emit.call(this, event, ...args)
}
afterAll(() => {
  pg.Connection.prototype.emit = emit
})
beforeEach(() => {
  described = 0
})

it.each(['rows', 'point'] as const)('%s: columns are described once on each connection', async (way) => {
  const query = (n: number): Sql => sql`
    select ${n}::int as n, null::text as nothing, '[1]'::jsonb as list, ${way} as way, to_timestamp(0) as time`
  const row = { nothing: null, list: [1], way, time: '1970-01-01T00:00:00.000Z' }
  // At once, so that `point` uses both of its connections.
  const first = await Promise.all([1, 2].map((n) => db[way](query(n))))
  expect(first).toEqual([[{ n: 1, ...row }], [{ n: 2, ...row }]])
  described = 0
  const many = [3, 4, 5, 6]
  const answers = await Promise.all(many.map((n) => db[way](query(n))))
  expect(answers).toEqual(many.map((n) => [{ n, ...row }]))
  expect(described).toBe(0)
})

it('reads one after the other use one connection, reads at once two', async () => {
  const pid = async () => (await db.point<{ pid: number }>(sql`select pg_backend_pid() as pid`))[0]?.pid
  const inTurn = [await pid(), await pid(), await pid()]
  expect(new Set(inTurn).size).toBe(1)
  expect(new Set(await Promise.all([pid(), pid(), pid(), pid()])).size).toBe(2)
  expect(await pid()).toBe(inTurn[0])
})

it('statements that fail, and those without columns or rows, are answered the same the second time', async () => {
  await db.run(sql`create table thing (n int primary key)`)
  const insert = (n: number) => db.run(sql`insert into thing select * from generate_series(1, ${n}::int)`)
  expect(await insert(2)).toBe(2)
  for (let time = 0; time < 2; time++) await expect(insert(3)).rejects.toThrow(/duplicate key/)
  const above = (n: number) => db.rows(sql`select n from thing where n > ${n}::int order by n`)
  expect([await above(2), await above(0), await above(1)]).toEqual([[], [{ n: 1 }, { n: 2 }], [{ n: 2 }]])
  await expect(db.rows(sql`select ${'x'}::text::int as n`)).rejects.toThrow()
  expect(await db.first(sql`select ${'7'}::text::int as n`)).toEqual({ n: 7 })
})

it('a statement whose columns have changed since it was described is refused, not misread', async () => {
  await db.run(sql`create table changing as select 1 as n`)
  const read = () => db.rows(sql`select * from changing`)
  for (let time = 0; time < 2; time++) expect(await read()).toEqual([{ n: 1 }])
  await db.run(sql`alter table changing add column more text default 'more'`)
  await expect(read()).rejects.toThrow(/cached plan must not change result type/)
})

import pg from 'pg'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import { openDatabase, type Sql, sql } from './db.ts'

const fresh = await migratedDatabase()
/** The number of statements sent about the tables that change. */
let sent = 0
const db = openDatabase({
  connection: fresh.connection,
  poolMax: 1,
  statementTimeoutMs: 10_000,
  onError: () => {},
  onStatement: (text) => {
    if (text.includes('changing_')) sent += 1
  },
})
afterAll(async () => {
  await db.close()
  await fresh.drop()
})

/** The number of column descriptions that the driver has read. */
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
  const first = [await db[way](query(1)), await db[way](query(2))]
  expect(first).toEqual([[{ n: 1, ...row }], [{ n: 2, ...row }]])
  described = 0
  const many = [3, 4, 5, 6]
  const answers = await Promise.all(many.map((n) => db[way](query(n))))
  expect(answers).toEqual(many.map((n) => [{ n, ...row }]))
  expect(described).toBe(0)
})

it('reads of the service and those of methods each have one connection, in turn and at once', async () => {
  const pidOf = (reader: Pick<typeof db, 'point'>) => async () =>
    (await reader.point<{ pid: number }>(sql`select pg_backend_pid() as pid`))[0]?.pid
  const [own, methods] = [pidOf(db), pidOf(db.readOnly)]
  const ofService = [await own(), await own()]
  // A read of a method does not wait until its connection is open.
  await expect.poll(methods).not.toBe(ofService[0])
  const ofMethods = [await methods(), await methods()]
  const [more, moreOfMethods] = await Promise.all([
    Promise.all([own(), own(), own()]),
    Promise.all([methods(), methods(), methods()]),
  ])
  expect([...ofService, ...more]).toEqual(Array(5).fill(ofService[0]))
  expect([...ofMethods, ...moreOfMethods]).toEqual(Array(5).fill(ofMethods[0]))
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

it.each(['rows', 'point', 'write'] as const)(
  'after a table has other columns, %s answers with those, and soon at the first attempt again',
  async (way) => {
    const table = sql.raw(`changing_${way}`)
    await db.run(sql`create table ${table} as select 1 as n`)
    const asked = way === 'write' ? sql`update ${table} set n = 1 returning *` : sql`select * from ${table}`
    const ask = () => (way === 'write' ? db.transaction((tx) => tx.rows(asked)) : db[way](asked))
    // Enough for both connections of `point`.
    const all = () => Promise.all(Array.from({ length: 4 }, ask))
    const four = (row: object) => Array.from({ length: 4 }, () => [row])
    for (let time = 0; time < 3; time++) expect(await all()).toEqual(four({ n: 1 }))
    sent = 0
    await all()
    const before = sent
    await db.run(sql`alter table ${table} add column more text default 'more'`)
    await db.run(sql`alter table ${table} alter column n type text`)
    for (let time = 0; time < 3; time++) expect(await all()).toEqual(four({ n: '1', more: 'more' }))
    sent = 0
    expect(await all()).toEqual(four({ n: '1', more: 'more' }))
    expect(sent).toBe(before)
  },
)

it('what cannot be repeated after a table has other columns is refused as unavailable', async () => {
  await db.run(sql`create table changing_once as select 1 as n`)
  const ask = () => db.transaction((tx) => tx.rows(sql`select * from changing_once`), { repeat: false })
  await ask()
  await db.run(sql`alter table changing_once add column more text`)
  await expect(ask()).rejects.toMatchObject({ data: { reason: 'service_unavailable' } })
  expect(await ask()).toEqual([{ n: 1, more: null }])
})

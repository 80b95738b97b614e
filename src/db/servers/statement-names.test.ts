import { createHash } from 'node:crypto'
import pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { migratedDatabase } from '../../../test/fresh-database.ts'
import { openDatabase, sql } from '../db.ts'

const fresh = await migratedDatabase()
const db = openDatabase({
  connection: fresh.connection,
  poolMax: 1,
  statementTimeoutMs: 10_000,
  onError: () => {},
})
afterAll(async () => {
  await db.close()
  await fresh.drop()
})

const prepared = sql`select statement, pg_backend_pid() as pid from pg_prepared_statements`
type Prepared = { statement: string; pid: number }
const common = sql`select 'common' as text, ${1}::int as n`
const rare = (n: number) => sql`select 'rare' as text, ${sql.raw(n)} as n, ${n}::int as same`

it.each([
  ['rows', 1],
  ['point', 2],
] as const)(
  'a text keeps its name among thousands of rare ones, and connections of %s shed what they no longer use',
  async (way, connections) => {
    let most = 0
    const pids = new Set<number>()
    for (let n = 0; n < 2000; n++) {
      expect(await db[way](rare(n))).toEqual([{ text: 'rare', n, same: n }])
      await db[way](common)
      if (n % 50 > 0) continue
      const statements = await db[way]<Prepared>(prepared)
      most = Math.max(most, statements.length)
      // A second name would prepare it a second time.
      expect(statements.filter(({ statement }) => statement.includes(`'common'`)).length).toBeLessThan(2)
      pids.add(statements[0]?.pid ?? 0)
    }
    expect(pids.size).toBeGreaterThan(connections)
    expect(most).toBeGreaterThan(100)
    expect(most).toBeLessThanOrEqual(602)
  },
)

it('loses no statement when connections wear out under load', async () => {
  // As many at once as one connection answers on a busy machine in the five seconds that each may wait.
  for (let first = 10_000; first < 14_000; first += 400) {
    const answers = await Promise.all(
      Array.from({ length: 400 }, async (_, n) => {
        const way = n % 2 === 0 ? 'point' : 'rows'
        return (await db[way]<{ n: number }>(rare(first + n)))[0]?.n
      }),
    )
    expect(answers).toEqual(Array.from({ length: 400 }, (_, n) => first + n))
  }
})

it('a text after thousands of others is prepared like the first', async () => {
  const late = sql`select 'late' as text`
  await db.rows(late)
  const statements = await db.rows<Prepared>(prepared)
  expect(statements.filter(({ statement }) => statement.includes(`'late'`))).toHaveLength(1)
})

it('a name depends on the text alone, so that it means the same in every process', async () => {
  const [{ name } = { name: '' }] = await db.rows<{ name: string }>(
    sql`select name from pg_prepared_statements where statement like '%the same everywhere%'`,
  )
  const text = `select name from pg_prepared_statements where statement like '%the same everywhere%'`
  expect(name).toBe(`ck_${createHash('sha256').update(text).digest('hex').slice(0, 20)}`)
})

it('transactions drop worn-out connections too', async () => {
  let most = 0
  for (let n = 0; n < 1000; n++)
    await db.transaction(async (tx) => {
      await tx.run(rare(20_000 + n))
      if (n % 100 === 0) most = Math.max(most, (await tx.rows(prepared)).length)
    })
  expect(most).toBeGreaterThan(100)
  expect(most).toBeLessThanOrEqual(602)
})

it('worn-out connections are closed', async () => {
  const client = new pg.Client(fresh.connection)
  await client.connect()
  const open = async () => {
    const { rows } = await client.query(`select count(*)::int as n from pg_stat_activity
      where datname = current_database() and application_name = 'cellkeep'`)
    return rows[0].n
  }
  // The pool's connection and the two for point reads, once the server processes of the others have ended.
  await expect.poll(open).toBeLessThanOrEqual(3)
  await client.end()
})

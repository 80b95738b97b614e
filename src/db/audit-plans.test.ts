import { afterAll, expect, test } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'

const database = await migratedDatabase()
const client = await database.open()
afterAll(() => database.drop())

const someone = '00000000-0000-4000-8000-000000000001'
const probe = 'select written from audit_log where seq is null order by written limit 1'
const plan = async (text: string): Promise<string> =>
  (await client.query(`explain ${text}`)).rows.map((line) => line['QUERY PLAN']).join('\n')

test('the probe for rows without a number stays on its index, whatever the statistics say', async () => {
  await client.query(
    `insert into audit_log (event_type, outcome) select 'x', 'success' from generate_series(1, 20000)`,
  )
  await client.query('analyze audit_log')
  expect(await plan(probe)).toMatch(/audit_log_unnumbered/)
  for (const _ of [1, 2]) await client.query('select audit_number()')
  expect(await plan(probe)).toMatch(/audit_log_unnumbered/)
  await client.query('vacuum analyze audit_log')
  expect(await plan(probe)).toMatch(/audit_log_unnumbered/)
  expect((await client.query(probe)).rowCount).toBe(0)
})

test.each([
  ['newest first', 'seq is not null', /Index Scan Backward using audit_log_seq/],
  ['after a number', 'seq > 10', /audit_log_seq/],
  ['of an account', `account_id = '${someone}' and seq is not null`, /audit_log_account|audit_log_seq/],
  ['on an account', `target_account_id = '${someone}' and seq < 99`, /audit_log_target|audit_log_seq/],
  ['of a type', `event_type = 'x' and seq is not null`, /audit_log_event|audit_log_seq/],
])('a list %s reads an index in order', async (_what, condition, index) => {
  await client.query('set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off')
  const text = await plan(`select * from audit_log where ${condition} order by seq desc limit 50`)
  expect(text).toMatch(index)
  expect(text).not.toMatch(/Sort/)
})

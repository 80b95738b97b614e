import { afterAll, expect, test } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'

const database = await migratedDatabase()
const client = await database.open()
afterAll(() => database.drop())

const someone = '00000000-0000-4000-8000-000000000001'
const plan = async (text: string): Promise<string> =>
  (await client.query(`explain ${text}`)).rows.map((line) => line['QUERY PLAN']).join('\n')

test('whether rows wait is read from the index, which remembers what is dead', async () => {
  const pages = async (): Promise<number> => {
    const { rows } = await client.query('explain (analyze, buffers, format json) select audit_waiting()')
    const { Plan } = rows[0]['QUERY PLAN'][0]
    return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
  }
  // The plan is made while the inbox is empty.
  await client.query('vacuum analyze audit_inbox')
  await pages()
  await client.query('alter table audit_inbox set (autovacuum_enabled = false)')
  await client.query(
    `insert into audit_inbox (event_type, outcome) select 'x', 'success' from generate_series(1, 20000)`,
  )
  for (const _ of [1, 2]) await client.query('select audit_number()')
  // A probe marks dead entries for the next one, but not while a transaction of another database is older than the
  // deletion.
  await expect.poll(pages).toBeLessThan(100)
  expect((await client.query('select audit_waiting() as is')).rows).toEqual([{ is: false }])
})

test.each([
  ['newest first', 'seq > 0', /Index Scan Backward using audit_log_0_pkey/],
  ['after a number', 'seq > 10', /audit_log_0_pkey/],
  ['of an account', `account_id = '${someone}' and seq > 0`, /audit_log_0_account|audit_log_0_pkey/],
  ['on an account', `target_account_id = '${someone}' and seq < 99`, /audit_log_0_target|audit_log_0_pkey/],
  ['of a type', `event_type = 'x' and seq > 0`, /audit_log_0_event|audit_log_0_pkey/],
])('a list %s reads an index in order', async (_what, condition, index) => {
  await client.query('set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off')
  const text = await plan(`select * from audit_log where ${condition} order by seq desc limit 50`)
  expect(text).toMatch(index)
  expect(text).not.toMatch(/Sort/)
})

test('the accounts of the actors that rows name are read by id, however many actors there are', async () => {
  const own = await database.open()
  await own.query(`
    with made as (
      insert into account (username, password_hash) select 'user' || n, '-' from generate_series(1, 2000) n
      returning id, username
    )
    insert into actor (account_id, name, name_key) select id, username, username from made;
    analyze actor`)
  const rows = JSON.stringify([
    { event_type: 'x', outcome: 'success', actor_id: someone, target_actor_id: someone },
  ])
  await own.query('begin')
  // More often than PostgreSQL plans a statement for its values.
  for (let nth = 0; nth < 8; nth++) await own.query('select audit_write_paired($1)', [rows])
  const { rows: read } = await own.query(
    `select seq_tup_read::int, idx_scan::int from pg_stat_xact_user_tables where relid = 'actor'::regclass`,
  )
  await own.query('rollback')
  expect(read).toEqual([{ seq_tup_read: 0, idx_scan: 16 }])
})

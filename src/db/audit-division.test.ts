import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { describeSchema } from '../../scripts/schema.ts'
import { emptyDatabase } from '../../test/fresh-database.ts'
import { migrate } from './migration/migrate.ts'
import { migrationNames } from './migration/steps.ts'

const steps = migrationNames()
const before = steps.slice(0, steps.indexOf('0025_audit_inbox'))
const kept = 20_000
const cell = '00000000-0000-4000-8000-00000000000c'
/** On a busy machine, the division holds its locks for longer than writers usually wait. */
const patient = `alter function audit_write set lock_timeout = '1min'`

/** Writes one row per call until it is stopped, and then resolves to how many. */
function writer(client: pg.Client): () => Promise<number> {
  let isOver = false
  const entry = JSON.stringify([{ event_type: 'new', outcome: 'success', cell_ids: [cell] }])
  const written = (async () => {
    for (let count = 0; ; count++) {
      if (isOver) return count
      const { rows } = await client.query('select audit_write($1) as report', [entry])
      expect(rows).toEqual([{ report: null }])
    }
  })()
  return () => {
    isOver = true
    return written
  }
}

/** Gives numbers until it is stopped, as readers do. */
function reader(client: pg.Client): () => Promise<void> {
  let isOver = false
  const done = (async () => {
    while (!isOver) await client.query('select audit_number()')
  })()
  return () => {
    isOver = true
    return done
  }
}

test('a log is divided while others write and read: no row is lost, repeated, renumbered or out of its timeline', async () => {
  const database = await emptyDatabase()
  onTestFinished(database.drop)
  await migrate(database.connection, { only: before })
  const client = await database.open()
  await client.query(patient)
  await client.query(
    `insert into audit_log (event_type, outcome, cell_ids, metadata)
     select 'old', 'success', case when n % 2 = 0 then array[$1::uuid] end, jsonb_build_object('n', n)
     from generate_series(1, $2::integer) n order by n`,
    [cell, kept],
  )
  await client.query('select audit_number(15000)')
  const numbered = `select id, seq, metadata from audit_log where event_type = 'old' order by seq limit 15000`
  const { rows: old } = await client.query(numbered)

  const stops = [writer(await database.open()), writer(await database.open())]
  const stop = reader(await database.open())
  // A transaction that wrote before the division, and commits after it.
  const late = await database.open()
  await late.query('begin')
  await late.query(`select audit_write('[{"event_type": "late", "outcome": "success"}]')`)
  const migrated = migrate(database.connection, { mode: 'run' })
  await expect
    .poll(
      async () =>
        (
          await client.query(`
            select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
              and application_name = 'cellkeep migrate'`)
        ).rowCount,
    )
    .toBeGreaterThan(0)
  await late.query('commit')
  expect((await migrated).pending).toEqual([])
  const counts = await Promise.all(stops.map((end) => end()))
  await stop()
  const written = counts.reduce((all, count) => all + count)
  while ((await client.query('select audit_number() as n')).rows[0].n > 0);

  const { rows } = await client.query(`
    select event_type, count(*)::int, count(distinct seq)::int as numbers, count(distinct id)::int as ids
    from audit_log group by 1 order by 1`)
  const all = (event_type: string, count: number) => ({ event_type, count, numbers: count, ids: count })
  expect(rows).toEqual([all('late', 1), all('new', written), all('old', kept)])
  expect((await client.query(numbered)).rows).toEqual(old)
  const { rows: places } = await client.query(`
    select count(*)::int as places, count(distinct m.seq)::int as numbers,
      count(*) filter (where l.cell_ids <> array[m.cell_id])::int as others
    from audit_cell m join audit_log l using (seq)`)
  expect(places).toEqual([{ places: written + kept / 2, numbers: written + kept / 2, others: 0 }])
  const { rows: positions } = await client.query(
    'select p.seq = (select max(seq) from audit_log) as is_last from audit_position p',
  )
  expect(positions).toEqual([{ is_last: true }])

  const fresh = await emptyDatabase()
  onTestFinished(fresh.drop)
  await migrate(fresh.connection)
  const other = await fresh.open()
  await other.query(patient)
  expect(await describeSchema(client)).toBe(await describeSchema(other))
  const { rows: parts } = await client.query(`
    select lower::int, upper::int from audit_partitions()`)
  expect(parts).toEqual([{ lower: 0, upper: 20_000_000 }])
})

import { parseArgs } from 'node:util'
import pg from 'pg'
import { migrate } from '../src/db/migration/migrate.ts'
import { migrationNames } from '../src/db/migration/steps.ts'
import { testService } from '../src/testing/index.ts'
import { emptyDatabase, type FreshDatabase } from '../test/fresh-database.ts'
import { fillAuditLog } from './audit-world.ts'
import { machine, machineLine } from './machine.ts'
import { short, table } from './numbers.ts'
import { Started } from './processes.ts'

/**
 * `npm run bench:growth`: how fast rows get their numbers, what writers notice while the log of an earlier version is
 * divided, and what the drop of an old partition costs, on a log of `--rows` rows.
 */
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '5000000' },
    /** Only this part. */
    only: { type: 'string' },
  },
})
const rows = Number(flags.rows)
const ratePerSecond = 100

type Line = [what: string, value: string]

const started = new Started()
try {
  const lines: Line[] = []
  for (const part of [numbering, division, retention])
    if (!flags.only || part.name === flags.only) lines.push(...(await part()))
  const { client } = await service()
  console.log(
    [
      `# The audit log as it grows, at ${rows} rows`,
      table(['What', 'measured'], lines),
      machineLine(await machine(client)),
    ].join('\n\n'),
  )
} finally {
  await started.close()
}

async function service(options: Parameters<typeof testService>[0] = {}) {
  const test = await testService(options)
  started.add(test.close)
  const client = new pg.Client(test.databaseUrl)
  await client.connect()
  started.add(() => client.end())
  return { test, client }
}

async function numbering(): Promise<Line[]> {
  const { client } = await service()
  const count = 200_000
  await client.query(
    `insert into audit_inbox (event_type, outcome, metadata, cell_ids)
     select 'x', 'success', '{"credential_type": "session"}', array[gen_random_uuid()] from generate_series(1, $1::int)`,
    [count],
  )
  const begun = performance.now()
  while ((await client.query('select audit_number() as n')).rows[0].n > 0);
  const seconds = (performance.now() - begun) / 1000
  return [['rows numbered in a second, each in a timeline', String(Math.round(count / seconds))]]
}

async function division(): Promise<Line[]> {
  const database = await emptyDatabase()
  started.add(database.drop)
  const steps = migrationNames()
  await migrate(database.connection, { only: steps.slice(0, steps.indexOf('0025_audit_inbox')) })
  const client = await database.open()
  await client.query(
    `insert into audit_log (seq, event_type, outcome, metadata, cell_ids)
     select i, 'x', 'success', '{"credential_type": "session"}', case when i % 2 = 0 then array[gen_random_uuid()] end
     from generate_series(1, $1::int) i`,
    [rows],
  )
  await client.query(
    'insert into audit_cell (cell_id, seq) select cell_ids[1], seq from audit_log where cell_ids is not null',
  )
  await client.query('update audit_position set seq = $1', [rows])
  await client.query('vacuum analyze audit_log, audit_cell')
  const writer = await startWriter(database)
  const begun = performance.now()
  await migrate(database.connection, { mode: 'run' })
  const seconds = (performance.now() - begun) / 1000
  const { calls, lost, longest } = await writer.stop()
  while ((await client.query('select audit_number() as n')).rows[0].n > 0);
  const { rows: kept } = await client.query(
    'select count(*)::int as all, count(distinct id)::int as ids from audit_log',
  )
  const isWhole = kept[0].all === rows + calls && kept[0].ids === kept[0].all
  return [
    [`division, with ${ratePerSecond} writes a second`, `${short(seconds)} s`],
    ['longest write meanwhile', `${short(longest)} ms`],
    ['writes, rows lost, rows all there once', `${calls}, ${lost}, ${isWhole ? 'yes' : 'NO'}`],
  ]
}

/** Writes a row every 10 ms, as a mutation does, and numbers them, as a list does. */
async function startWriter(database: FreshDatabase) {
  const [client, reader] = [await database.open(), await database.open()]
  let [isOver, calls, lost, longest] = [false, 0, 0, 0]
  const entry = '[{"event_type": "new", "outcome": "success"}]'
  const written = (async () => {
    for (const begun = performance.now(); !isOver; ) {
      const sent = performance.now()
      const { rows } = await client.query('select audit_write($1) as report', [entry])
      longest = Math.max(longest, performance.now() - sent)
      calls += 1
      if (rows[0].report !== null) lost += 1
      const next = begun + (calls * 1000) / ratePerSecond
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())))
    }
  })()
  const read = (async () => {
    while (!isOver) {
      await reader.query('select audit_number()')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()
  return {
    stop: async () => {
      isOver = true
      await Promise.all([written, read])
      return { calls, lost, longest }
    },
  }
}

async function retention(): Promise<Line[]> {
  const { test, client } = await service({ audit_retention_days: 1 })
  await client.query('delete from audit_inbox')
  await fillAuditLog(client, rows, 1)
  await client.query(
    `update audit_log set created_at = now() - interval '3 days' where created_at > now() - interval '3 days'`,
  )
  await client.query('vacuum analyze audit_log')
  await client.query('select audit_partition(seq + 1) from audit_position')
  await client.query(`update audit_position set seq = (select min(upper) from audit_partitions()) - 1`)
  await client.query('checkpoint')
  const sizeOf = async (): Promise<number> =>
    (await client.query('select pg_database_size(current_database())::float8 as bytes')).rows[0].bytes
  const walOf = async (): Promise<number> =>
    (await client.query(`select (pg_current_wal_insert_lsn() - '0/0')::float8 as at`)).rows[0].at
  const admin = await test.account({ roles: ['admin'] })
  const [size, wal] = [await sizeOf(), await walOf()]
  let [isOver, longest] = [false, 0]
  const calls = (async () => {
    while (!isOver) {
      const sent = performance.now()
      await admin.client.audit_log_list({ limit: 10 })
      longest = Math.max(longest, performance.now() - sent)
    }
  })()
  const begun = performance.now()
  const { removed_audit_rows } = await test.service.operations.cleanUp()
  const seconds = (performance.now() - begun) / 1000
  isOver = true
  await calls
  return [
    ['rows that retention dropped', `${removed_audit_rows}, in ${short(seconds)} s`],
    ['longest list meanwhile', `${short(longest)} ms`],
    ['WAL', `${short(((await walOf()) - wal) / 1e6)} MB`],
    ['disk given back', `${short((size - (await sizeOf())) / 1e6)} MB`],
  ]
}

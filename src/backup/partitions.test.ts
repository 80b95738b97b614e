import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { emptyDatabase } from '../../test/fresh-database.ts'
import { auditRows } from '../../test/helpers/audit-rows.ts'
import { ownLocks } from '../../test/helpers/own-locks.ts'
import { numberRows } from '../audit/numbering.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'
import { writeBackup } from './backup.ts'
import { restoreBackup } from './restore.ts'

it('a log over several partitions is restored into those that its numbers need', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'ck-parts-'))
  const [test, target] = [await testService(), await emptyDatabase()]
  onTestFinished(async () => {
    await test.close()
    await target.drop()
    await rm(dir, { recursive: true })
  })
  const { db } = test.service.app
  const cell = '00000000-0000-4000-8000-00000000000c'
  for (const seq of [19_999_990, 45_000_000, 1_000_000_000]) {
    await db.run(sql`update audit_position set seq = ${seq}::bigint`)
    await auditRows(test, 20, { cell_ids: sql`array[${cell}::uuid]` })
    await numberRows(db)
  }
  // One that still waits for its number.
  await auditRows(test, 1)
  const file = join(dir, 'file')
  await writeBackup({ connectionString: test.databaseUrl }, { to: file, version: '1.2.3' })
  await restoreBackup(target.connection, file)

  const client = await target.open()
  const numbers = 'select seq::float8 as seq from audit_log order by seq'
  const { rows } = await client.query(numbers)
  expect(rows).toEqual(await db.rows(sql.raw(numbers)))
  expect(rows).toHaveLength(60)
  const { rows: places } = await client.query('select seq::float8 as seq from audit_cell order by seq')
  expect(places).toEqual(rows)
  const { rows: parts } = await client.query(
    'select lower::float8 / 1e6 as m from audit_partitions() order by 1',
  )
  expect(parts.map(({ m }) => m)).toEqual([0, 20, 40, 1000])
  // Rows of the inbox get numbers above those already in the log.
  await client.query('select audit_number()')
  const { rows: last } = await client.query(
    'select seq::float8 as seq, written = max(written) over () as is_last from audit_log order by seq desc limit 1',
  )
  expect(last).toEqual([{ seq: 1_000_000_021, is_last: true }])
  await client.query(`select audit_write('[{"event_type": "x", "outcome": "success"}]')`)
  expect((await client.query('select from audit_inbox')).rowCount).toBe(1)
})

it('a partition that is dropped while a backup begins is not missing from it alone', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'ck-parts-'))
  const [test, target] = [await testService({ audit_retention_days: 30 }), await emptyDatabase()]
  const blocker = new pg.Client({ connectionString: test.databaseUrl })
  onTestFinished(async () => {
    await blocker.end()
    await test.close()
    await target.drop()
    await rm(dir, { recursive: true })
  })
  const { db } = test.service.app
  // The last rows of the first partition.
  await db.run(sql`update audit_position set seq = 19999969, removed_seq = 19999969`)
  await auditRows(test, 30, { created_at: sql`now() - interval '40 days'` })
  await numberRows(db)

  // The tables are read in the order of their names: the backup waits before it comes to the log.
  await blocker.connect()
  await blocker.query('begin; lock table actor in access exclusive mode')
  const file = join(dir, 'file')
  const written = writeBackup({ connectionString: test.databaseUrl }, { to: file, version: '1.2.3' })
  const waiting = sql`select from ${sql.raw(ownLocks)} l where relation = 'actor'::regclass and not granted`
  await expect.poll(() => db.run(waiting)).toBe(1)
  expect(await test.service.operations.cleanUp()).toMatchObject({ removed_audit_rows: 30 })
  await blocker.query('rollback')
  await written

  await restoreBackup(target.connection, file)
  const { rows } = await (await target.open()).query(
    `select seq::int, removed_seq::int, (select count(*)::int from audit_log) as kept from audit_position`,
  )
  const [{ seq, removed_seq, kept }] = rows
  expect(kept).toBe(seq - removed_seq)
})

import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase } from '../../../test/fresh-database.ts'
import { toUrl } from '../../testing/cluster.ts'
import { testService } from '../../testing/index.ts'
import { sql } from '../db.ts'

test.each([
  [`default_transaction_isolation = 'serializable'`],
  [`datestyle = 'SQL, DMY'`],
  ['extra_float_digits = -15'],
  ['array_nulls = off'],
  ['standard_conforming_strings = off'],
  ['statement_timeout = 1'],
  ['lock_timeout = 1'],
])('calls go on as ever on a database with the default %s', async (setting) => {
  const { connection, open, drop } = await emptyDatabase()
  onTestFinished(drop)
  const name = pg.escapeIdentifier(connection.database as string)
  await (await open()).query(`alter database ${name} set ${setting}`)
  const service = await testService({ database_url: toUrl(connection), limit_store: 'postgres' })
  onTestFinished(() => service.close())
  const { client } = await service.account({ roles: ['admin'] })
  // At once, so that they wait for the row of one limiter and for the numbers of the audit log.
  const made = await Promise.all(
    Array.from({ length: 20 }, (_, n) => client.cell_create({ data: { n, quoted: `\\ ' "` } })),
  )
  const changed = await Promise.all(
    made.map(({ cell }) => client.cell_update({ cell_id: cell.id, data_patch: { n: null } })),
  )
  expect(changed.map(({ cell }) => cell.data)).toEqual(made.map(() => ({ quoted: `\\ ' "` })))
  expect(Math.abs(Date.parse(made[0]?.cell.created_at ?? '') - Date.now())).toBeLessThan(60_000)
  const { events } = await client.audit_log_list({ event_type: 'cell_update' })
  expect(events).toHaveLength(20)
  expect(await (await fetch(`${service.url}/ready`)).json()).toEqual({ ready: true })
})

test('a default that ends idle sessions ends none of the pool', async () => {
  const { connection, open, drop } = await emptyDatabase()
  onTestFinished(drop)
  const name = pg.escapeIdentifier(connection.database as string)
  await (await open()).query(`alter database ${name} set idle_session_timeout = '5min'`)
  const service = await testService({ database_url: toUrl(connection) })
  onTestFinished(() => service.close())
  const { db } = service.service.app
  const asked = sql`select current_setting('idle_session_timeout') as ends`
  expect(await db.rows(asked)).toEqual([{ ends: '0' }])
  expect(await db.readOnly.point(asked)).toEqual([{ ends: '0' }])
})

// transaction_timeout is a setting of PostgreSQL 17 and newer.
test('a default that ends transactions ends none of the pool', async () => {
  const { connection, open, drop } = await emptyDatabase()
  onTestFinished(drop)
  const name = pg.escapeIdentifier(connection.database as string)
  const client = await open()
  const { rows } = await client.query(
    `select current_setting('transaction_timeout', true) is not null as has`,
  )
  const set = rows[0].has ? 'transaction_timeout' : 'idle_in_transaction_session_timeout'
  await client.query(`alter database ${name} set ${set} = '50ms'`)
  const service = await testService({ database_url: toUrl(connection) })
  onTestFinished(() => service.close())
  const { db } = service.service.app
  const slow = sql`select pg_sleep(0.2) is null as woke`
  expect(await db.rows(slow)).toEqual([{ woke: false }])
  expect(await db.readOnly.point(slow)).toEqual([{ woke: false }])
})

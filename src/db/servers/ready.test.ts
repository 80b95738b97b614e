import { EventEmitter, once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { migratedDatabase } from '../../../test/fresh-database.ts'
import { openDatabase } from '../db.ts'
import { expectedColumns } from '../migration/expected-columns.ts'
import { createReadiness } from './ready.ts'

const sinceMs = expect.any(Number)
const ready = { ready: true }
const drift = { ready: false, reason: 'schema_drift', sinceMs }
const unreachable = { ready: false, reason: 'db_unreachable', sinceMs }

function open(connection: pg.ClientConfig) {
  const statements: string[] = []
  const errors = new EventEmitter()
  const db = openDatabase({
    connection,
    poolMax: 2,
    statementTimeoutMs: 10_000,
    onError: () => errors.emit('error-seen'),
    onStatement: (text) => statements.push(text),
  })
  const clock = { ms: 0 }
  const logged: Record<string, unknown>[] = []
  const warnings = new Set<string>()
  const readiness = createReadiness(db, {
    warnings,
    log: { error: (fields) => void logged.push(fields as Record<string, unknown>) },
    now: () => clock.ms,
  })
  const check = () => {
    clock.ms += 2_000
    return readiness.check()
  }
  return { db, errors, warnings, statements, clock, logged, readiness, check }
}

async function served() {
  const database = await migratedDatabase()
  const parts = open(database.connection)
  onTestFinished(async () => {
    await parts.db.close()
    await database.drop()
  })
  return { ...parts, database, client: await database.open() }
}

test('the expected columns are those of a freshly migrated database, of every table', async () => {
  const { client } = await served()
  const { rows } = await client.query<{ table_name: string; columns: string[] }>(
    `select table_name::text, array_agg(column_name::text order by ordinal_position) as columns
       from information_schema.columns join pg_class on oid = to_regclass(table_name) and not relispartition
      where table_schema = current_schema() group by 1`,
  )
  expect(Object.fromEntries(expectedColumns())).toEqual(
    Object.fromEntries(rows.map((row) => [row.table_name, row.columns])),
  )
})

test('a fresh database is ready', async () => {
  const { check, logged } = await served()
  expect(await check()).toEqual(ready)
  expect(logged).toEqual([])
})

test.each([
  ['dropped column', 'alter table cell_item drop column position', ['column cell_item.position']],
  ['renamed column', 'alter table account rename username to user_name', ['column account.username']],
  [
    'dropped table',
    'drop table bootstrap_lock',
    ['column bootstrap_lock.id', 'column bootstrap_lock.bootstrapped'],
  ],
  [
    'table out of the search path',
    'create schema s; alter table api_token set schema s',
    [/^column api_token\./],
  ],
  ['removed record', `delete from schema_migration where name = '0004_cells'`, ['migration 0004_cells']],
])('a %s is drift, and the log alone names it', async (_what, change, missing) => {
  const { check, client, logged } = await served()
  expect(await check()).toEqual(ready)
  await client.query(change)
  expect(await check()).toEqual(drift)
  expect(await check()).toEqual(drift)
  expect(logged).toHaveLength(1)
  const named = logged[0]?.missing as string[]
  for (const part of missing)
    if (typeof part === 'string') expect(named).toContain(part)
    else expect(named).toContainEqual(expect.stringMatching(part))
})

test('a database user that may not write any more is drift, and the log names where', async () => {
  const { database, client } = await served()
  const role = `reader_${(database.connection.database as string).slice(-8)}`
  await client.query(`
    create role ${role} login; grant usage on schema cellkeep to ${role};
    grant select, insert on all tables in schema cellkeep to ${role}`)
  const { check, logged, db } = open({ ...database.connection, user: role })
  onTestFinished(async () => {
    await db.close()
    await client.query(`drop owned by ${role}; drop role ${role}`)
  })
  expect(await check()).toEqual(ready)
  await client.query(`revoke insert on cell, account from ${role}`)
  expect(await check()).toEqual(drift)
  expect(logged[0]?.missing).toEqual(['privilege to insert into account', 'privilege to insert into cell'])
  await client.query(`grant insert on cell, account to ${role}`)
  expect(await check()).toEqual(ready)
})

test('a missing schema_migration table is drift, not an unreachable database', async () => {
  const { check, client } = await served()
  await client.query('drop table schema_migration')
  expect(await check()).toEqual(drift)
})

test('extra columns, tables and migrations are not drift, even while a node runs, but a warning', async () => {
  const { check, client, warnings } = await served()
  expect(await check()).toEqual(ready)
  expect([...warnings]).toEqual([])
  await client.query(`
    alter table account add column nickname text;
    create table of_a_later_version (id uuid);
    insert into schema_migration (name) values ('9999_later')`)
  expect(await check()).toEqual(ready)
  expect([...warnings]).toEqual(['schema_newer'])
  await client.query(`delete from schema_migration where name = '9999_later'`)
  await check()
  expect([...warnings]).toEqual([])
})

test('a repaired database is ready again, and a new problem is logged again', async () => {
  const { check, client, logged } = await served()
  await client.query('alter table account rename username to user_name')
  expect(await check()).toEqual(drift)
  await client.query('alter table account rename user_name to username')
  expect(await check()).toEqual(ready)
  await client.query('alter table account rename username to user_name')
  expect(await check()).toEqual(drift)
  expect(logged).toHaveLength(2)
})

test('a thousand probes at once make one query, and so do all probes within two seconds', async () => {
  const { readiness, clock, statements } = await served()
  const answers = await Promise.all(Array.from({ length: 1000 }, () => readiness.check()))
  expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(new Set([JSON.stringify(ready)]))
  clock.ms = 1_999
  await readiness.check()
  expect(statements).toHaveLength(1)
  clock.ms = 2_000
  await readiness.check()
  expect(statements).toHaveLength(2)
})

test('a database that is gone is unreachable', async () => {
  const { check, database, logged } = await served()
  expect(await check()).toEqual(ready)
  await database.drop()
  expect(await check()).toEqual(unreachable)
  expect(await check()).toEqual(unreachable)
  expect(logged).toMatchObject([{ reason: 'db_unreachable', err: { message: expect.anything() } }])
  const nobody = open({ host: '127.0.0.1', port: 1 })
  onTestFinished(() => nobody.db.close())
  expect(await nobody.check()).toEqual(unreachable)
})

test('a lost connection is replaced by the next check', async () => {
  const { check, client, errors } = await served()
  expect(await check()).toEqual(ready)
  const ended = once(errors, 'error-seen')
  await client.query(`select pg_terminate_backend(pid) from pg_stat_activity
                       where datname = current_database() and pid <> pg_backend_pid()`)
  await ended
  expect(await check()).toEqual(ready)
})

test('a database that does not answer within two seconds is unreachable', async () => {
  const { check, client } = await served()
  await client.query('begin; lock table schema_migration in access exclusive mode')
  expect(await check()).toEqual(unreachable)
  await client.query('rollback')
  expect(await check()).toEqual(ready)
})

test('without expected columns it refuses to start', () => {
  const { db } = open({ host: '/nowhere' })
  onTestFinished(() => db.close())
  const refusal = expect.objectContaining({ reason: 'schema_map_empty', exitCode: 3 })
  expect(() =>
    createReadiness(db, {
      expected: new Map(),
    }),
  ).toThrow(refusal)
  expect(() =>
    createReadiness(db, {
      expected: new Map([['cell', []]]),
    }),
  ).toThrow(refusal)
  expect(() => expectedColumns('/nowhere/schema.sql')).toThrow(refusal)
  const file = join(tmpdir(), `ck-empty-${process.pid}.sql`)
  writeFileSync(file, '-- nothing\n')
  onTestFinished(() => rmSync(file))
  expect(() => expectedColumns(file)).toThrow(refusal)
})

import { readFile } from 'node:fs/promises'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { describeSchema, schemaFile } from '../../scripts/schema.ts'
import {
  emptyDatabase,
  emptyDatabaseWith,
  type FreshDatabase,
  migratedDatabase,
} from '../../test/fresh-database.ts'
import { migrate } from './migration/migrate.ts'
import { makeRecords } from './migration/records.ts'
import { readSteps, statementsOf } from './migration/steps.ts'

const database = await migratedDatabase()
const client = await database.open()
afterAll(() => database.drop())

const golden = () => readFile(schemaFile, 'utf8')
describe('the golden file', () => {
  test('is a freshly migrated database', async () => {
    expect(await describeSchema(client), 'run `node scripts/schema.ts`').toBe(await golden())
  })

  test('is executable and complete: a database made from it has the same description', async () => {
    const copy = await emptyDatabase()
    onTestFinished(copy.drop)
    const made = await copy.open()
    await made.query(await golden())
    expect(await describeSchema(made)).toBe(await golden())
  })

  test('notices a changed column, default, constraint, index and function', async () => {
    const before = await golden()
    for (const change of [
      'alter table cell alter column kind type varchar(128)',
      'alter table cell alter column version set default 2',
      'alter table cell alter column kind set not null',
      'alter table cell drop constraint cell_version',
      'drop index cell_deleted',
      `create or replace function audit_number(most integer default 10000) returns integer language sql as 'select 0'`,
    ]) {
      await client.query('begin')
      await client.query(change)
      expect(await describeSchema(client), change).not.toBe(before)
      await client.query('rollback')
    }
  })
})

test('every migration can run again on its own result, and changes nothing', async () => {
  const again = await emptyDatabase()
  onTestFinished(again.drop)
  const runner = await again.open()
  await makeRecords(runner)
  for (const [step, { kind, text }] of readSteps().entries()) {
    // An index is not built concurrently in a transaction, and several statements sent at once are one.
    const statements = kind === 'index' ? statementsOf(text) : [text]
    const run = async (): Promise<string> => {
      for (const statement of statements)
        await runner.query(statement, kind === 'backfill' ? [null, 100] : [])
      return await describeSchema(runner)
    }
    const first = await run()
    if (step === 0) await runner.query(`insert into account (username, password_hash) values ('kept', 'x')`)
    expect(await run()).toBe(first)
  }
  expect(await describeSchema(runner)).toBe(await golden())
  const { rows } = await runner.query(`
    select (select array_agg(username) from account) as accounts, (select count(*)::int from bootstrap_lock) as locks,
           (select count(*)::int from audit_position) as positions`)
  expect(rows).toEqual([{ accounts: ['kept'], locks: 1, positions: 1 }])
})

test('every text is compared bytewise and every time has milliseconds', async () => {
  const { rows } = await client.query(`
    select table_name || '.' || column_name as name from information_schema.columns
     where table_schema = current_schema()
       and (data_type = 'text' and collation_name is distinct from 'C'
            or data_type like 'timestamp%' and (datetime_precision <> 3 or data_type not like '%with time zone')
            or data_type in ('character varying', 'character', 'json'))`)
  expect(rows, 'declare them as `text collate "C"`, `timestamptz(3)` or `jsonb`').toEqual([])
})

test('no sequence is unlogged: on a standby that is promoted it may be an empty page for good', async () => {
  const { rows } = await client.query(
    `select relname from pg_class where relkind = 'S' and relpersistence = 'u'`,
  )
  expect(rows).toEqual([])
})

test('every reference has an index that leads with it, so that a purge scans no table', async () => {
  const { rows } = await client.query(`
    select conrelid::regclass || '.' || attname as reference
      from pg_constraint join pg_attribute on attrelid = conrelid and attnum = conkey[1]
     where contype = 'f' and connamespace = current_schema()::regnamespace
       and not exists (
             select from pg_index
              where indrelid = conrelid and indkey[0] = conkey[1]
                and (indpred is null
                     or pg_get_expr(indpred, indrelid) = '(' || attname || ' IS NOT NULL)'))`)
  expect(rows).toEqual([])
})

test('a cell has 13 indexes at most, because each write of a cell may have to write all of them', async () => {
  const { rows } = await client.query(`select indexname as name from pg_indexes where tablename = 'cell'`)
  expect(rows.length, JSON.stringify(rows)).toBeLessThanOrEqual(13)
})

test('no index repeats the primary key', async () => {
  const { rows } = await client.query(`
    select i.indexrelid::regclass::text as name from pg_index i join pg_index p on p.indrelid = i.indrelid
     where p.indisprimary and not i.indisprimary and i.indkey::text = p.indkey::text and i.indpred is null
       and i.indrelid::regclass::text not like 'pg_%'`)
  expect(rows).toEqual([])
})

describe.each(['en-US', 'tr-TR'])('under an ICU default collation (%s)', (locale) => {
  let other: FreshDatabase | undefined
  let icu: pg.Client

  beforeAll(async () => {
    const name = `ck_icu_${locale.slice(0, 2)}_${process.pid}`
    try {
      other = await emptyDatabaseWith(
        name,
        `locale_provider icu icu_locale '${locale}' locale 'C' encoding 'UTF8'`,
      )
    } catch (error) {
      // A build without ICU; any other error fails the test.
      if ((error as pg.DatabaseError).code !== '0A000') throw error
      return
    }
    await migrate(other.connection)
    icu = await other.open()
  })
  afterAll(() => other?.drop())

  test('the schema is the same', async ({ skip }) => {
    if (!other) return skip()
    expect(await describeSchema(icu)).toBe(await golden())
  })

  test('positions and names are in byte order', async ({ skip }) => {
    if (!other) return skip()
    const sorted = await icu.query<{ v: string }>(`select v from unnest('{V,a,B,9}'::text[]) v order by v`)
    expect(sorted.rows.map((row) => row.v)).toEqual(['9', 'a', 'B', 'V'])
    const parent = (await icu.query(`insert into cell (data, data_bytes) values ('{}', 2) returning id`))
      .rows[0].id
    for (const position of ['V', 'a', 'B', '9'])
      await icu.query('insert into cell_item (parent_id, position, child_id) values ($1, $2, $1)', [
        parent,
        position,
      ])
    for (const name of ['ab', 'a_', 'a1', 'b'])
      await icu.query('insert into cell_field (source_id, name, target_id) values ($1, $2, $1)', [
        parent,
        name,
      ])
    const items = await icu.query('select position from cell_item order by position')
    expect(items.rows.map((row) => row.position)).toEqual(['9', 'B', 'V', 'a'])
    const fields = await icu.query('select name from cell_field order by name')
    expect(fields.rows.map((row) => row.name)).toEqual(['a1', 'a_', 'ab', 'b'])
  })

  test('a path prefix is an index range', async ({ skip }) => {
    if (!other) return skip()
    await icu.query('set enable_seqscan = off')
    const audience = `(case when visibility = 'public' then 'public' else coalesce(created_by::text, 'nobody') end collate "C")`
    const plan = await icu.query(`explain select id from cell
      where deleted_at is null and path is not null and path >= 'a/' and path < 'a0' and ${audience} = 'public'
      order by path`)
    const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(text).toMatch(/cell_audience_path /)
    expect(text).toMatch(/Index Cond:.*path >= 'a\/'.*path < 'a0'/)
  })

  test('a username with an I is lower case by ASCII rules', async ({ skip }) => {
    if (!other) return skip()
    await icu.query(`insert into account (username, password_hash) values ('irix', 'x')`)
    await expect(
      icu.query(`insert into account (username, password_hash) values ('IRIX', 'x')`),
    ).rejects.toMatchObject({ constraint: 'account_username_lower' })
  })
})

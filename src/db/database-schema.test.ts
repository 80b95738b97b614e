import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase, type FreshDatabase } from '../../test/fresh-database.ts'
import { shell } from '../../test/helpers/shell.ts'
import { writeBackup } from '../backup/backup.ts'
import { restoreBackup } from '../backup/restore.ts'
import { toUrl } from '../testing/cluster.ts'
import { type TestOptions, type TestService, testService } from '../testing/index.ts'
import { sql } from './db.ts'
import { migrate, withClient } from './migration/migrate.ts'
import { planned } from './migration/plan.ts'
import { readSteps } from './migration/steps.ts'
import { locate } from './servers/locate.ts'

async function empty(): Promise<FreshDatabase> {
  const database = await emptyDatabase()
  onTestFinished(database.drop)
  return database
}

async function serviceOn(database: FreshDatabase, options: TestOptions = {}): Promise<TestService> {
  const service = await testService({ database_url: toUrl(database.connection), ...options })
  onTestFinished(() => service.close())
  return service
}

const tablesOf = async (database: FreshDatabase): Promise<Record<string, number>> => {
  const { rows } = await (await database.open()).query<{ schema: string; tables: number }>(
    `select schemaname as schema, count(*)::int as tables from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema') group by 1`,
  )
  return Object.fromEntries(rows.map(({ schema, tables }) => [schema, tables]))
}

const exists = async (database: FreshDatabase, table: string): Promise<boolean> =>
  (await (await database.open()).query('select to_regclass($1) is not null as is', [table])).rows[0].is

test('a new database gets a schema of its own, and tables of the same names elsewhere are left alone', async () => {
  const database = await empty()
  const owner = await database.open()
  await owner.query(`create table account (mine text); insert into account values ('kept')`)
  await owner.query(`create table schema_migration (name int, applied_at text)`)
  const test = await serviceOn(database)
  const ada = await test.account()
  expect((await ada.client.cell_create({ data: {} })).cell.created_by).toBe(ada.actor_id)
  expect((await owner.query('select * from public.account')).rows).toEqual([{ mine: 'kept' }])
  expect((await tablesOf(database)).public).toBe(2)
  expect((await fetch(`${test.url}/ready`)).status).toBe(200)
})

test('a database of an earlier version keeps its tables in public, also where the default schema exists', async () => {
  const database = await empty()
  await migrate(database.connection)
  await (await database.open()).query('create schema cellkeep')
  const test = await serviceOn(database)
  const ada = await test.account()
  const { rows } = await (await database.open()).query('select username from public.account')
  expect(rows).toEqual([{ username: ada.username }])
  expect(Object.keys(await tablesOf(database))).toEqual(['public'])
})

test('a service never takes the migrations of another program for its own', async () => {
  const database = await empty()
  await (await database.open()).query(
    `create table schema_migration (name text, applied_at timestamptz);
     insert into schema_migration (name) values ('0001_theirs')`,
  )
  expect(await locate(database.connection, null)).toMatchObject({ schema: 'cellkeep' })
})

test('migrations that the user may not read stop the start, as they may be those of the service', async () => {
  const database = await empty()
  const owner = await database.open()
  const role = `ck_unread_${process.pid}`
  await owner.query(
    `create role ${role} login; create table schema_migration (name text, applied_at timestamptz)`,
  )
  onTestFinished(async () => void (await owner.query(`drop role ${role}`)))
  await expect(locate({ ...database.connection, user: role }, null)).rejects.toMatchObject({
    reason: 'db_permission_denied',
    message: expect.stringMatching(
      /may not read schema_migration in the schema public.*CELLKEEP_DATABASE_SCHEMA/,
    ),
    exitCode: 3,
  })
})

test('tables of another program in the chosen schema stop the start before its first step', async () => {
  const database = await empty()
  await (await database.open()).query('create table account (id int); create view cell as select 1 as one')
  await expect(serviceOn(database, { database_schema: 'public' })).rejects.toMatchObject({
    reason: 'foreign_tables',
    message: expect.stringMatching(/public holds account, cell,.*CELLKEEP_DATABASE_SCHEMA.*cellkeep/),
    exitCode: 3,
  })
  expect(await exists(database, 'public.schema_migration')).toBe(false)
  expect(await exists(database, 'public.actor')).toBe(false)
  const plan = withClient({ ...database.connection, schema: 'public' }, (client) =>
    planned(client, readSteps()),
  )
  await expect(plan).rejects.toMatchObject({ reason: 'foreign_tables' })
  await (await database.open()).query('create schema cellkeep create table account (id int)')
  await expect(serviceOn(database)).rejects.toMatchObject({
    message: expect.stringMatching(/cellkeep holds account,.* such as cellkeep_own\.$/),
  })
})

test('a user who may not make the schema is told who can', async () => {
  const database = await empty()
  const owner = await database.open()
  const role = `plain_${process.pid}`
  await owner.query(`create role ${role} login`)
  onTestFinished(async () => {
    const client = await database.open()
    await client.query(`drop owned by ${role}; drop role ${role}`)
  })
  const connection = { ...database.connection, user: role, schema: 'cellkeep' }
  await expect(migrate(connection)).rejects.toMatchObject({
    reason: 'migration_failed',
    message: expect.stringContaining('create schema cellkeep authorization'),
  })
  await owner.query('create schema cellkeep')
  await expect(migrate(connection)).rejects.toMatchObject({
    reason: 'migration_failed',
    message: expect.stringContaining('grant create, usage on schema cellkeep to'),
  })
  await owner.query(`alter schema cellkeep owner to ${role}`)
  expect((await migrate(connection)).applied.length).toBeGreaterThan(10)
})

test('a user serves whose name has to be quoted', async () => {
  const database = await empty()
  const owner = await database.open()
  const role = `First.Last "${process.pid}"`
  const quoted = pg.escapeIdentifier(role)
  await owner.query(`create role ${quoted} login`)
  onTestFinished(async () => {
    const client = await database.open()
    await client.query(`drop owned by ${quoted}; drop role ${quoted}`)
  })
  await owner.query(`grant create on database ${database.connection.database} to ${quoted}`)
  const test = await serviceOn(database, { database_url: toUrl({ ...database.connection, user: role }) })
  expect(await (await fetch(`${test.url}/ready`)).json()).toEqual({ ready: true })
  await owner.query(`alter role ${quoted} set default_transaction_read_only = on`)
  await expect
    .poll(async () => await (await fetch(`${test.url}/ready`)).json())
    .toEqual({ error: 'db_read_only' })
})

test('two services in two schemas of one database are apart: accounts, cells, signals and locks', async () => {
  const database = await empty()
  const [left, right] = [
    await serviceOn(database, { database_schema: 'left' }),
    await serviceOn(database, { database_schema: 'right' }),
  ]
  const node = await serviceOn(database, { database_schema: 'left' })
  const [ada, other] = [
    await left.account({ username: 'ada' }),
    await right.account({ username: 'ada', password: 'another password' }),
  ]
  const { cell } = await ada.client.cell_create({ data: {}, visibility: 'public' })
  expect((await node.client(ada.cookie).cell_get({ id: cell.id })).cell).toEqual(cell)
  expect((await other.client.cell_list({})).cells).toEqual([])
  expect(await right.client(ada.cookie).try.cell_list({ created_by: ada.actor_id })).toMatchObject({
    ok: false,
    error: { reason: 'cell_list_created_by_requires_auth' },
  })

  const heard = { node: 0, right: 0 }
  const arrived = new Promise<void>((resolve) => {
    node.service.app.hub.listen(() => {
      heard.node += 1
      resolve()
    })
  })
  right.service.app.hub.listen(() => {
    heard.right += 1
  })
  await ada.client.cell_create({ data: {} })
  await arrived
  // Whatever `left` has sent is delivered to every listener before this.
  await other.client.cell_create({ data: {} })
  expect(heard.right).toBe(1)

  await left.service.app.db.exclusively('one job', async () => {
    expect(await node.service.app.db.exclusively('one job', async () => true)).toBeUndefined()
    expect(await right.service.app.db.exclusively('one job', async () => true)).toBe(true)
  })
  expect(Object.keys(await tablesOf(database)).sort()).toEqual(['left', 'right'])
})

test('a backup goes from one schema into another', async () => {
  const [from, to] = [await empty(), await empty()]
  const test = await serviceOn(from, { database_schema: 'left' })
  const ada = await test.account({ username: 'ada' })
  const { cell } = await ada.client.cell_create({ data: {}, visibility: 'public' })
  const file = join(tmpdir(), `ck-schema-${process.pid}.backup`)
  onTestFinished(() => rm(file, { force: true }))
  await writeBackup({ ...from.connection, schema: 'left' }, { to: file, version: '1' })
  await restoreBackup({ ...to.connection, schema: 'right' }, file)
  const restored = await serviceOn(to, { database_schema: 'right' })
  expect((await restored.client().cell_get({ id: cell.id })).cell).toEqual(cell)
  await restored.account({ username: 'bob' })
})

test('commands and doctor find the schema that the server uses', async () => {
  const database = await empty()
  await serviceOn(database, { database_schema: 'left' })
  const at = (schema?: string) =>
    shell(
      {
        CELLKEEP_DATABASE_URL: toUrl(database.connection),
        ...(schema && { CELLKEEP_DATABASE_SCHEMA: schema }),
      },
      tmpdir(),
    )
  expect((await at('left')(['migrate', '--check'])).code).toBe(0)
  expect((await at()(['migrate', '--check'])).code).toBe(3)
  expect((await at('left')(['doctor', '--json'])).stdout).not.toContain('migration_pending')
})

test('start-up options of the URL are kept, and neither they nor a consumer’s path hide the tables', async () => {
  const database = await empty()
  const url = new URL(toUrl(database.connection))
  url.searchParams.set('options', '-c search_path=nowhere -c work_mem=5MB')
  const test = await serviceOn(database, { database_url: url.href })
  const found = await test.service.app.db.readOnly.one(sql`
    select current_setting('search_path') as path, current_setting('work_mem') as memory,
      current_setting('default_transaction_read_only') as read_only`)
  expect(found).toEqual({ path: 'cellkeep,public', memory: '5MB', read_only: 'on' })
  await (await test.account()).client.cell_create({ data: {} })
})

test('a search path keeps leading to the tables of its service after another came to the default schema', async () => {
  const database = await empty()
  await migrate({ ...database.connection, schema: 'mine' })
  const url = new URL(toUrl(database.connection))
  url.searchParams.set('options', '-c search_path=mine')
  const schema = async () => (await locate({ connectionString: url.href }, null)).schema
  expect(await schema()).toBe('mine')
  await migrate({ ...database.connection, schema: 'cellkeep' })
  expect(await schema()).toBe('mine')
})

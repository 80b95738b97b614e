import { execFile, spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase, emptyDatabaseWith, type FreshDatabase } from '../../../test/fresh-database.ts'
import { withSteps, writeSteps } from '../../../test/helpers/planted-steps.ts'
import { silentLog } from '../../log/log.ts'
import { migrate } from './migrate.ts'
import type { Around } from './runner.ts'
import { migrationNames, readSteps } from './steps.ts'

const names = migrationNames()

async function empty(): Promise<FreshDatabase> {
  const database = await emptyDatabase()
  onTestFinished(database.drop)
  return database
}

async function tables(database: FreshDatabase): Promise<string[]> {
  const client = await database.open()
  const { rows } = await client.query<{ relname: string }>(
    `select relname from pg_class where relnamespace = 'public'::regnamespace`,
  )
  return rows.map((row) => row.relname)
}

test('the names are the files in order', () => {
  expect(names.slice(0, 4)).toEqual(['0001_accounts', '0002_roles', '0003_audit', '0004_cells'])
  expect(names).toEqual([...names].sort())
})

test('a migration file with a malformed name is refused, and so is a folder without migrations', () => {
  expect(() => migrationNames(withSteps({ '5_Later': '' }))).toThrow('5_Later.sql is not named like')
  expect(() => migrationNames(tmpdir())).toThrow(expect.objectContaining({ reason: 'migrations_missing' }))
  expect(() => migrationNames('/nowhere')).toThrow(
    expect.objectContaining({ reason: 'migrations_missing', exitCode: 3 }),
  )
})

test('files that cannot be read because too many are open are not told to be missing', () => {
  const from = (file: string) => JSON.stringify(new URL(file, import.meta.url))
  const script = `
    const { openSync } = await import('node:fs')
    const { migrationNames } = await import(${from('steps.ts')})
    const { expectedColumns } = await import(${from('expected-columns.ts')})
    try { for (;;) openSync('/dev/null') } catch {}
    const told = [migrationNames, expectedColumns].map((read) => {
      try { return read() } catch ({ reason, message, exitCode }) { return { reason, message, exitCode } }
    })
    console.log(JSON.stringify(told))`
  const limited = [
    '-c',
    'ulimit -n 100; exec "$@"',
    'sh',
    process.execPath,
    '--input-type=module',
    '-e',
    script,
  ]
  const { stdout } = spawnSync('/bin/sh', limited, { encoding: 'utf8' })
  const message = expect.stringMatching(
    /^Cannot read \S+: too many files are open \(EMFILE\)\. Raise the limit /,
  )
  const told = { reason: 'descriptors_out', message, exitCode: 1 }
  expect(JSON.parse(stdout)).toEqual([told, told])
})

test('an empty database gets every migration in order, and a second run has nothing to do', async () => {
  const database = await empty()
  const seen: string[] = []
  const logged: object[] = []
  const log = { ...silentLog, info: (fields: object | string) => void logged.push(fields as object) }
  const around: Around = (step, work) => {
    seen.push(step.name)
    return work()
  }
  expect(await migrate(database.connection, { around, log })).toEqual({
    applied: names,
    pending: [],
    newer: [],
  })
  expect(seen).toEqual(names)
  expect(logged).toEqual(readSteps().map(({ name, kind }) => ({ migration: name, kind })))
  expect(await migrate(database.connection, { around })).toMatchObject({ applied: [], pending: [] })
  expect(seen).toEqual(names)
})

test('ten processes that start at once on an empty database apply each migration once', async () => {
  const database = await empty()
  const program = `
    import { migrate } from ${JSON.stringify(new URL('./migrate.ts', import.meta.url).href)}
    console.log(JSON.stringify((await migrate(${JSON.stringify(database.connection)})).applied))`
  const run = promisify(execFile)
  const started = Array.from({ length: 10 }, () =>
    run(process.execPath, ['--input-type=module', '--eval', program]),
  )
  const applied = (await Promise.all(started)).map(({ stdout }) => JSON.parse(stdout) as string[])
  expect(applied.filter((list) => list.length > 0)).toEqual([names])
})

test('ten connections that migrate at once apply each migration once', async () => {
  const database = await empty()
  const runs = await Promise.all(Array.from({ length: 10 }, () => migrate(database.connection)))
  expect(runs.flatMap((run) => run.applied)).toEqual(names)
})

test('a failing last migration is named and leaves no table and no record; once fixed it succeeds', async () => {
  const database = await empty()
  const directory = withSteps({ '9999_last': 'create table last_thing (); select 1 / 0' })
  await expect(migrate(database.connection, { directory })).rejects.toMatchObject({
    reason: 'migration_failed',
    exitCode: 3,
    message: expect.stringMatching(/9999_last.*division by zero/),
  })
  expect(await tables(database)).toEqual([])
  writeSteps(directory, { '9999_last': 'create table last_thing ()' })
  expect(await migrate(database.connection, { directory })).toMatchObject({
    applied: [...names, '9999_last'],
  })
})

test('only pending migrations are applied', async () => {
  const database = await empty()
  await migrate(database.connection)
  const directory = withSteps({ '9998_next': 'create table next_thing ()', '9999_last': 'select 1' })
  expect(await migrate(database.connection, { directory })).toMatchObject({
    applied: ['9998_next', '9999_last'],
  })
})

test('a database that a newer version migrated is refused with the unknown names', async () => {
  const database = await empty()
  await migrate(database.connection, {
    directory: withSteps({ '9999_newer': '-- cellkeep: kind=expand needs=999.0.0\nselect 1' }),
  })
  for (const mode of ['auto', 'check'] as const)
    await expect(migrate(database.connection, { mode })).rejects.toMatchObject({
      reason: 'binary_older_than_db',
      exitCode: 3,
      message: expect.stringContaining('9999_newer'),
    })
})

test.each([
  ['a hole in the records', `delete from schema_migration where name = '0002_roles'`, '0003_audit'],
  ['a renamed step', `update schema_migration set name = '0002_role' where name = '0002_roles'`, '0002_role'],
  [
    'a foreign first step',
    `update schema_migration set name = '0000_x' where name = '0001_accounts'`,
    '0000_x',
  ],
])('%s is a divergence, and nothing is applied', async (_what, change, named) => {
  const database = await empty()
  await migrate(database.connection)
  const client = await database.open()
  await client.query(change)
  const before = (await client.query('select * from schema_migration order by name')).rows
  await expect(migrate(database.connection)).rejects.toMatchObject({
    reason: 'migration_name_divergence',
    exitCode: 3,
    message: expect.stringContaining(named),
  })
  expect((await client.query('select * from schema_migration order by name')).rows).toEqual(before)
})

test('check mode refuses pending migrations without writing, and accepts a current database', async () => {
  const database = await empty()
  await expect(migrate(database.connection, { mode: 'check' })).rejects.toMatchObject({
    reason: 'migration_pending',
    exitCode: 3,
    message: expect.stringMatching(/0001_accounts.*0004_cells.*cellkeep migrate/),
  })
  expect(await tables(database)).toEqual([])
  await migrate(database.connection)
  expect(await migrate(database.connection, { mode: 'check' })).toMatchObject({ applied: [] })
})

test('an unreachable database is refused with exit code 3, without showing the password', async () => {
  const connection = { host: '127.0.0.1', port: 1, user: 'u', password: 'secret-word', database: 'd' }
  const error = await migrate(connection).catch((caught) => caught)
  expect(error).toMatchObject({ reason: 'db_unreachable', exitCode: 3 })
  expect(error.message).toContain('ECONNREFUSED')
  expect(error.message).not.toContain('secret-word')
  const database = await empty()
  await expect(migrate({ ...database.connection, database: 'no_such' })).rejects.toMatchObject({
    reason: 'db_unreachable',
    message: expect.stringContaining('no_such'),
  })
})

test('a connection lost within a migration ends in a refusal and leaves nothing', async () => {
  const database = await empty()
  const directory = withSteps({ '9999_last': 'select pg_terminate_backend(pg_backend_pid())' })
  await expect(migrate(database.connection, { directory })).rejects.toMatchObject({
    reason: 'db_unreachable',
    exitCode: 3,
    message: expect.stringContaining('9999_last'),
  })
  expect(await tables(database)).toEqual([])
})

test('time limits set for the database do not end a migration', async () => {
  const database = await empty()
  const client = await database.open()
  const name = database.connection.database
  // Longer than anything takes on a busy machine, as they also apply to the first statement of a session.
  const { rows: limits } = await client.query(
    `select name from pg_settings where name ~ '^(statement|lock|transaction|idle.*session)_timeout$'`,
  )
  for (const { name: limit } of limits) await client.query(`alter database ${name} set ${limit} = '77s'`)
  await client.query(`alter database ${name} set default_transaction_isolation = 'serializable'`)
  const directory = withSteps({
    '9999_told': `create table told as select name, setting from pg_settings
      where name ~ '^(statement|lock|transaction|idle.*session)_timeout$' and setting = '77000' or name = 'transaction_isolation'`,
  })
  expect((await migrate(database.connection, { directory })).applied).toContain('9999_told')
  const told = await client.query('select * from told')
  expect(told.rows).toEqual([{ name: 'transaction_isolation', setting: 'read committed' }])
})

test('a failing lock is fatal', async () => {
  const database = await empty()
  const holder = await database.open()
  await holder.query(`select pg_advisory_lock(hashtextextended('cellkeep migrate', 0))`)
  const attempt = migrate(database.connection)
  const waiting = `select pg_terminate_backend(pid) as ended from pg_stat_activity
                    where application_name = 'cellkeep migrate' and datname = current_database()
                      and query like '%pg_try_advisory_lock%'`
  const refused = expect(attempt).rejects.toMatchObject({
    message: expect.stringContaining('waiting for the migration lock'),
  })
  while ((await holder.query(waiting)).rows.length === 0);
  await refused
})

test('a database that is not encoded in UTF-8 is refused', async () => {
  const database = await emptyDatabaseWith(`ck_latin_${process.pid}`, `encoding 'LATIN1' locale 'C'`)
  onTestFinished(database.drop)
  await expect(migrate(database.connection)).rejects.toMatchObject({
    reason: 'db_unsuitable',
    exitCode: 3,
    message: expect.stringContaining('LATIN1'),
  })
})

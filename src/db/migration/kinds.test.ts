import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase, type FreshDatabase, migratedDatabase } from '../../../test/fresh-database.ts'
import { withSteps, writeSteps } from '../../../test/helpers/planted-steps.ts'
import { silentLog } from '../../log/log.ts'
import { startBackgroundSteps } from './background.ts'
import { costliest, effectsOf, strongest } from './effects.ts'
import { migrate, withClient } from './migrate.ts'
import { blockerText } from './patience.ts'
import { planned } from './plan.ts'
import { type MigrationStatus, statusOf } from './status.ts'
import { isOlder, readSteps } from './steps.ts'

const rowCount = 20_000

/** One step of each kind, on a table with rows that the fourth step makes. */
const expand = `create table if not exists made (id integer primary key, n integer not null default 0, tag text);
insert into made select n from generate_series(1, ${rowCount}) n on conflict do nothing`
const index = `-- cellkeep: kind=index needs=0.1.0
create index concurrently if not exists made_tag on made (tag);`
const backfill = `-- cellkeep: kind=backfill needs=0.1.0
-- Each row counts how often it was changed.
with batch as (
  select id from made where id > coalesce(($1::jsonb ->> 'id')::integer, 0) order by id limit $2
), changed as (
  update made set n = n + 1 from batch where made.id = batch.id returning made.id
)
select case when count(*) > 0 then jsonb_build_object('id', max(id)) end as cursor, count(*)::integer as rows from changed;`
const contract = `-- cellkeep: kind=contract needs=0.2.0
alter table made drop column if exists tag;`
const each = {
  '9001_fill': backfill,
  '9002_index': index,
  '9003_drop': contract,
  '9004_last': 'create table if not exists last_made (id integer)',
}

async function database(make: () => Promise<FreshDatabase> = migratedDatabase): Promise<FreshDatabase> {
  const made = await make()
  onTestFinished(made.drop)
  return made
}

/** A migrated database that has the table, and the directory of a version with more steps. */
async function planted(steps: Record<string, string> = each) {
  const made = await database()
  const directory = withSteps({ '9000_made': expand })
  await migrate(made.connection, { directory })
  writeSteps(directory, steps)
  const status = (): Promise<MigrationStatus> =>
    withClient(made.connection, (client) => statusOf(client, readSteps(directory)))
  return { connection: made.connection, directory, client: await made.open(), status }
}

const states = ({ steps }: MigrationStatus) =>
  Object.fromEntries(steps.filter(({ step }) => step > '9000').map(({ step, state }) => [step, state]))

const one = async <T>(client: pg.Client, text: string): Promise<T> => (await client.query(text)).rows[0]

test('a file that does not say what kind it is, is refused', () => {
  const directory = withSteps({ '9001_said': 'select 1' })
  writeSteps(directory, { '9002_unsaid': '-- cellkeep: kind=index\nselect 1' })
  expect(() => readSteps(directory)).toThrow('9002_unsaid.sql does not begin with a line like')
})

test('versions compare by their numbers; a pre-release counts as its release', () => {
  expect(isOlder('0.9.9', '0.10.0')).toBe(true)
  expect(isOlder('0.10.0', '0.9.9')).toBe(false)
  expect(isOlder('1.0.0-rc.1', '1.0.0')).toBe(false)
  expect(isOlder('1.0.0', '1.0.0')).toBe(false)
})

test('a start expands and leaves the rest; a run does it in order and records it', async () => {
  const { connection, directory, client, status } = await planted()
  const started = await migrate(connection, { directory })
  expect(started.applied).toEqual(['9004_last'])
  expect(started.pending.map(({ name }) => name)).toEqual(['9001_fill', '9002_index', '9003_drop'])
  expect(await migrate(connection, { directory, mode: 'check' })).toMatchObject({ applied: [] })
  expect(states(await status())).toMatchObject({ '9001_fill': 'pending', '9004_last': 'done' })

  const seen: Record<string, number[]> = {}
  const run = await migrate(connection, {
    directory,
    mode: 'run',
    around: ({ name }, work) =>
      work((done) => {
        seen[name] = [...(seen[name] ?? []), done]
      }),
  })
  expect(run).toMatchObject({ applied: ['9001_fill', '9002_index', '9003_drop'], pending: [] })
  expect(seen['9001_fill']?.at(-1)).toBe(rowCount)
  expect(seen['9001_fill']?.length).toBeGreaterThan(3)
  expect(await one(client, 'select min(n), max(n) from made')).toEqual({ min: 1, max: 1 })
  const record = `select kind, needs, state, done_rows::integer, cursor, started_at <= done_at as timed
                    from schema_migration where name = '9001_fill'`
  expect(await one(client, record)).toEqual({
    ...{ kind: 'backfill', needs: '0.1.0', state: 'done' },
    ...{ done_rows: rowCount, cursor: null, timed: true },
  })
  expect((await migrate(connection, { directory, mode: 'run' })).applied).toEqual([])
})

test('an empty database gets steps of every kind in one transaction, or none', async () => {
  const made = await database(emptyDatabase)
  const directory = withSteps({ '9000_made': expand, ...each, '9005_wrong': 'select 1 / 0' })
  const { connection } = made
  const client = await made.open()
  await expect(migrate(connection, { directory })).rejects.toMatchObject({ reason: 'migration_failed' })
  expect(await one(client, `select to_regclass('made') as made`)).toEqual({ made: null })
  writeSteps(directory, { '9005_wrong': 'select 1' })
  expect(await migrate(connection, { directory })).toMatchObject({ pending: [] })
  expect(await one(client, 'select min(n), max(n) from made')).toEqual({ min: 1, max: 1 })
  // The contract step dropped the column, and its index with it.
  expect(await one(client, `select to_regclass('made_tag') as made_tag`)).toEqual({ made_tag: null })
})

test('an older version starts beside a newer schema that lets it, and says so', async () => {
  const { connection, directory } = await planted({ '9001_more': 'select 1' })
  await migrate(connection, { directory })
  const warned: object[] = []
  const log = { ...silentLog, warn: (fields: object | string) => void warned.push(fields as object) }
  const older = { log, version: '0.1.0' }
  expect(await migrate(connection, older)).toMatchObject({ applied: [], newer: ['9000_made', '9001_more'] })
  expect(warned).toEqual([{ event: 'schema_newer', steps: ['9000_made', '9001_more'] }])

  writeSteps(directory, { '9002_later': '-- cellkeep: kind=expand needs=0.3.0\nselect 1' })
  await migrate(connection, { directory })
  for (const mode of ['auto', 'check', 'run'] as const)
    await expect(migrate(connection, { ...older, mode })).rejects.toMatchObject({
      reason: 'binary_older_than_db',
      exitCode: 3,
      message: expect.stringMatching(/this version, 0\.1\.0,.*9002_later needs 0\.3\.0/),
    })
  expect(await migrate(connection, { version: '0.3.0-rc.1' })).toMatchObject({ applied: [] })
})

test('a contract waits until no node is alive that is older', async () => {
  const { connection, directory, client } = await planted({ '9003_drop': contract })
  const seen = (ago: string) =>
    client.query(
      `insert into node (id, name, version, known_step, pid, started_at, seen_at, state)
       values ('n', 'kiel', '0.1.9', '9000_made', 1, now(), now() - $1::interval, 'ready')
       on conflict (id) do update set seen_at = excluded.seen_at`,
      [ago],
    )
  await seen('10 seconds')
  await expect(migrate(connection, { directory, mode: 'run' })).rejects.toMatchObject({
    reason: 'contract_blocked',
    exitCode: 3,
    message: expect.stringMatching(/9003_drop .*older than version 0\.2\.0 .*kiel \(0\.1\.9\)/),
  })
  expect(
    await one(client, `select count(*)::integer as there from schema_migration where name = '9003_drop'`),
  ).toEqual({
    there: 0,
  })
  await seen('16 seconds')
  expect((await migrate(connection, { directory, mode: 'run' })).applied).toEqual(['9003_drop'])
})

test('a step that does not get its lock holds up nobody for long, and names who has it', async () => {
  const { connection, directory, client } = await planted({
    '9001_wide': 'alter table made add column wide integer',
  })
  await client.query(`set application_name = 'a long report'; begin; select count(*) from made`)
  const patience = { lockMs: 300, tries: 3, pauseMs: [50, 100] } as const
  const writer = new (await import('pg')).default.Client(connection)
  await writer.connect()
  onTestFinished(() => writer.end())
  await writer.query(`set search_path = cellkeep`)
  let written = 0
  let isOver = false
  const writing = (async () => {
    for (; !isOver; written++) await writer.query('update made set n = n where id = 1')
  })()
  await expect.poll(() => written).toBeGreaterThan(0)
  written = 0
  await expect(migrate(connection, { directory, patience })).rejects.toMatchObject({
    reason: 'migration_lock_timeout',
    exitCode: 3,
    message: expect.stringMatching(
      /9001_wide .* 3 tries; it was held by the server process \d+ \(a long report\), whose transaction began \d+ s ago: let that end, or run `select pg_terminate_backend\(\d+\)`/,
    ),
  })
  // A writer that waited behind one try goes on before the next.
  expect(written).toBeGreaterThanOrEqual(2)
  const later = migrate(connection, { directory, patience: { ...patience, tries: 20 } })
  await client.query('select pg_sleep(0.5); commit')
  expect((await later).applied).toEqual(['9001_wide'])
  isOver = true
  await writing
})

test('a prepared transaction, which has no process, is named with what ends it', async () => {
  const { connection, directory, client, status } = await planted({
    '9001_index': index,
    '9002_wide': 'alter table made add column wide integer',
  })
  const ending = `rollback prepared 'it''s half done'`
  const named = /^the prepared transaction 'it''s half done' \(user \w+\), prepared \d+ s ago$/
  await client.query(`begin; update made set n = n where id = 1; prepare transaction 'it''s half done'`)
  const indexing = migrate(connection, { directory, mode: 'run' })
  await expect
    .poll(async () => (await status()).runners[0]?.waits_for.map(blockerText))
    .toEqual([expect.stringMatching(named)])
  await client.query(ending)
  await indexing
  writeSteps(directory, { '9003_wider': 'alter table made add column wider integer' })
  await client.query(`begin; select from made; prepare transaction 'it''s half done'`)
  const patience = { lockMs: 300, tries: 3, pauseMs: [50, 100] } as const
  await expect(migrate(connection, { directory, patience })).rejects.toMatchObject({
    message: expect.stringContaining(`: let that end, or run \`${ending}\`. Then`),
  })
  await client.query(ending)
  expect((await migrate(connection, { directory })).applied).toEqual(['9003_wider'])
})

/** Runs all steps in a process of its own, which the test kills or stops. */
function runner(connection: FreshDatabase['connection'], directory: string, patience = {}) {
  const program = `
    import { migrate } from ${JSON.stringify(new URL('./migrate.ts', import.meta.url).href)}
    await migrate(${JSON.stringify(connection)}, ${JSON.stringify({ directory, mode: 'run', patience })})`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  const ended = once(child, 'exit')
  const said = text(child.stderr)
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    kill: () => child.kill('SIGKILL') && ended,
    signal: (name: 'SIGSTOP' | 'SIGCONT') => child.kill(name),
    ended,
    said,
  }
}

test('a process that stands still in the middle of a step does not keep its locks', async () => {
  const { connection, directory, client, status } = await planted({
    '9001_wide': 'alter table made add column wide integer; select pg_advisory_xact_lock(9001);',
  })
  await client.query('select pg_advisory_lock(9001)')
  const run = runner(connection, directory, { standstillMs: 500, lockMs: 20_000 })
  await expect.poll(async () => (await status()).runners[0]?.waits_for.length).toBe(1)
  run.signal('SIGSTOP')
  await client.query('select pg_advisory_unlock(9001)')
  await client.query('update made set n = n where id = 1')
  run.signal('SIGCONT')
  expect(await run.ended).toEqual([1, null])
  expect(await run.said).toContain(
    'Migration failed (9001_wide): terminating connection due to idle-in-transaction timeout.',
  )
  expect(states(await status())).toEqual({ '9000_made': 'done', '9001_wide': 'pending' })
  expect((await migrate(connection, { directory, mode: 'run' })).applied).toEqual(['9001_wide'])
})

test('kill -9 in the middle of an index leaves nothing that the next run does not repair', async () => {
  const { connection, directory, client, status } = await planted({ '9002_index': index })
  // The index waits for this transaction to end.
  await client.query('begin; update made set n = n where id = 1')
  const run = runner(connection, directory)
  await expect.poll(async () => (await status()).runners[0]?.waits_for.length).toBe(1)
  const now = await status()
  expect(states(now)).toMatchObject({ '9002_index': 'running' })
  expect(now.runners).toMatchObject([{ index: { phase: expect.stringContaining('waiting for') } }])
  await run.kill()
  await expect.poll(async () => (await status()).runners).toEqual([])
  expect(states(await status())).toMatchObject({ '9002_index': 'interrupted' })
  await client.query('commit')
  const valid = `select indisvalid as valid from pg_index where indexrelid = to_regclass('made_tag')`
  expect(await one(client, valid)).toEqual({ valid: false })
  expect((await migrate(connection, { directory, mode: 'run' })).applied).toEqual(['9002_index'])
  expect(await one(client, valid)).toEqual({ valid: true })
  expect(states(await status())).toMatchObject({ '9002_index': 'done' })
})

test('kill -9 in the middle of a backfill: the next run goes on, and takes each row once', async () => {
  const slow = backfill.replace('from changed;', 'from changed, pg_sleep(0.1);')
  const { connection, directory, client, status } = await planted({ '9001_fill': slow })
  const done = async () => (await status()).steps.find(({ step }) => step === '9001_fill')?.done_rows ?? 0
  const run = runner(connection, directory)
  await expect.poll(done).toBeGreaterThan(0)
  await run.kill()
  await expect.poll(async () => (await status()).runners).toEqual([])
  const left = await done()
  expect(left).toBeLessThan(rowCount)
  expect(await status()).toMatchObject({
    steps: expect.arrayContaining([
      expect.objectContaining({ state: 'interrupted', done_rows: left, total_rows: expect.any(Number) }),
    ]),
  })
  writeSteps(directory, { '9001_fill': backfill })
  expect((await migrate(connection, { directory, mode: 'run' })).applied).toEqual(['9001_fill'])
  expect(await one(client, 'select min(n), max(n) from made')).toEqual({ min: 1, max: 1 })
  expect(await done()).toBe(rowCount)
})

test.each([
  ['expand', { '9001_next': 'create table made_next (); select pg_terminate_backend(pg_backend_pid())' }],
  ['contract', { '9001_next': `${contract}\nselect pg_terminate_backend(pg_backend_pid())` }],
])('a connection lost in the middle of a step of kind %s undoes it', async (_kind, steps) => {
  const { connection, directory, client, status } = await planted(steps)
  await expect(migrate(connection, { directory, mode: 'run' })).rejects.toMatchObject({
    reason: 'db_unreachable',
    message: expect.stringContaining('9001_next'),
  })
  expect(states(await status())).toEqual({ '9000_made': 'done', '9001_next': 'pending' })
  writeSteps(directory, { '9001_next': 'create table made_next ()' })
  await migrate(connection, { directory, mode: 'run' })
  expect(await one(client, 'select count(tag)::integer as tags from made')).toEqual({ tags: 0 })
})

test('ten that run at once do each step once, and no waiting one holds up an index', async () => {
  const counted = {
    '9000_ran': 'create table ran (step text)',
    ...each,
    '9003_drop': `${contract}\ninsert into ran values ('drop')`,
    '9004_last': `insert into ran values ('last')`,
  }
  const { connection, directory, client } = await planted(counted)
  const modes = Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? 'run' : 'auto') as 'run' | 'auto')
  const runs = await Promise.all(modes.map((mode) => migrate(connection, { directory, mode })))
  expect(runs.flatMap(({ applied }) => applied).sort()).toEqual(Object.keys(counted).sort())
  expect((await client.query('select step from ran order by step')).rows).toEqual([
    { step: 'drop' },
    { step: 'last' },
  ])
  expect(await one(client, 'select min(n), max(n) from made')).toEqual({ min: 1, max: 1 })
})

test('nodes fill and build in the background, one of them; contracts wait', async () => {
  const { connection, directory, client, status } = await planted()
  const { pending } = await migrate(connection, { directory })
  const logged: string[] = []
  const log = { ...silentLog, info: (fields: object | string) => void logged.push(JSON.stringify(fields)) }
  const ends = [1, 2, 3].map(() =>
    startBackgroundSteps(connection, pending, log, { directory, everyMs: 100 }),
  )
  await expect
    .poll(async () => states(await status()))
    .toEqual({
      ...{ '9000_made': 'done', '9001_fill': 'done', '9002_index': 'done' },
      ...{ '9003_drop': 'pending', '9004_last': 'done' },
    })
  await Promise.all(ends.map((end) => end()))
  expect(await one(client, 'select min(n), max(n) from made')).toEqual({ min: 1, max: 1 })
  expect(logged.filter((line) => line.includes('9001_fill'))).toHaveLength(1)
  expect(logged.filter((line) => line.includes('9003_drop'))).toHaveLength(3)
})

test('a node that stops ends its index at once, and the next one builds it', async () => {
  const { connection, directory, client, status } = await planted({ '9002_index': index })
  await client.query('begin; update made set n = n where id = 1')
  const { pending } = await migrate(connection, { directory })
  const end = startBackgroundSteps(connection, pending, silentLog, { directory })
  await expect.poll(async () => (await status()).runners[0]?.waits_for.length).toBe(1)
  await end()
  await expect.poll(async () => (await status()).runners).toEqual([])
  await client.query('commit')
  expect((await migrate(connection, { directory, mode: 'run' })).applied).toEqual(['9002_index'])
})

test('a plan tells locks, scans and rows, and waits for no lock', async () => {
  const { connection, directory, client } = await planted({
    ...each,
    '9004_last': 'alter table made add column other integer; create table new_made (id integer)',
    '9005_new': 'create index on new_made (id)',
  })
  await client.query('analyze made')
  await client.query('begin; lock table made, cell, schema_migration in share row exclusive mode')
  const plans = await withClient(connection, (session) =>
    planned(
      session,
      readSteps(directory).filter(({ name }) => name > '9000_made'),
    ),
  )
  await client.query('rollback')
  expect(plans).toMatchObject([
    {
      step: '9001_fill',
      kind: 'backfill',
      lock: 'ROW EXCLUSIVE',
      cost: 'scan',
      rows: rowCount,
      nodes_go_on: true,
    },
    { step: '9002_index', kind: 'index', lock: 'SHARE UPDATE EXCLUSIVE', cost: 'scan', rows: rowCount },
    {
      step: '9003_drop',
      kind: 'contract',
      needs: '0.2.0',
      lock: 'ACCESS EXCLUSIVE',
      cost: 'none',
      nodes_below: [],
    },
    {
      step: '9004_last',
      tables: [{ table: 'made', lock: 'ACCESS EXCLUSIVE', cost: 'none' }],
      nodes_go_on: true,
    },
    { step: '9005_new', tables: [], lock: 'ACCESS SHARE', rows: null },
  ])
})

test.each([
  ['alter table cell alter column kind type varchar(9)', 'ACCESS EXCLUSIVE', 'rewrite'],
  ['alter table cell add column k uuid default gen_random_uuid()', 'ACCESS EXCLUSIVE', 'rewrite'],
  ['alter table cell add column k timestamptz default now()', 'ACCESS EXCLUSIVE', 'none'],
  ['alter table cell add constraint c check (true)', 'ACCESS EXCLUSIVE', 'scan'],
  ['alter table cell add constraint c check (true) not valid', 'ACCESS EXCLUSIVE', 'none'],
  ['alter table cell validate constraint c', 'SHARE UPDATE EXCLUSIVE', 'scan'],
  ['alter table cell set (fillfactor = 50)', 'SHARE UPDATE EXCLUSIVE', 'none'],
  ['create index on_cell on cell (kind)', 'SHARE', 'scan'],
  ['do $$ begin if true then drop table cell; end if; end $$', 'ACCESS EXCLUSIVE', 'none'],
  ['create function f() returns void language sql as $$ drop table cell $$', 'ACCESS SHARE', 'none'],
  ['create table new (id uuid references cell (id))', 'SHARE ROW EXCLUSIVE', 'none'],
  ['select id from cell for update skip locked', 'ACCESS SHARE', 'none'],
])('%s', (text, lock, cost) => {
  const effects = effectsOf({ text })
  expect([strongest(effects), costliest(effects)]).toEqual([lock, cost])
})

test('no expanding step scans or rewrites a table that may be large while others wait for it', () => {
  // Earlier steps were released that way, or fold the names of the few accounts that need it.
  const steps = readSteps().filter(({ name, kind }) => kind === 'expand' && name > '0010')
  for (const step of steps) {
    // The first has one row, the second rows that live for minutes.
    const large = effectsOf(step).filter(({ table }) => !/^(audit_position|limiter_charge)$/.test(table))
    expect(costliest(large), step.name).toBe('none')
  }
})

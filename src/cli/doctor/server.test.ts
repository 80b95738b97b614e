import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { runCellkeep } from '../../../test/helpers/server-process.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { shell } from '../../../test/helpers/shell.ts'
import { stoppedPair } from '../../../test/helpers/stoppable-cluster.ts'
import { execute } from '../main.ts'

/** A primary with the settings of a good installation, and a standby of it. */
const { primary, standby } = await stoppedPair()
afterAll(() => Promise.all([standby.remove(), primary.remove()]))
// Autovacuum must not repair what a test breaks.
const patient = { autovacuum_naptime: '3600' }
await primary.start(patient)
await standby.start(patient)
const test = await serviceForFile({ database_url: primary.url })
await test.account({ roles: ['keeper', 'admin'] })
const admin = new pg.Client(test.databaseUrl)
await admin.connect()
afterAll(() => admin.end())
const run = async (...statements: string[]) => {
  for (const statement of statements) await admin.query(statement)
}
await run('set search_path = cellkeep', 'update bootstrap_lock set bootstrapped = true')

const env = {
  CELLKEEP_DATABASE_URL: test.databaseUrl,
  CELLKEEP_COOKIE_KEYS: 'Zq3vX9-kLm0_TtYw7bHs4nRd8pGf2cJa',
}
const doctor = shell(env, '/')
const found = async (args: string[] = []): Promise<string[]> => {
  const { stdout, stderr } = await doctor(['doctor', '--json', ...args])
  expect(stderr).toBe('')
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line).finding as string)))
}
/** The next connection sees changes of the server's settings only a moment later. */
const eventually = (findings: string[]) => expect.poll(() => found()).toEqual(findings)
const set = (name: string, value: string) =>
  run(`alter system set ${name} = ${value}`, 'select pg_reload_conf()')
// An autoanalyze between two statements of a test would change the counts of tables and indexes.
await set('autovacuum_naptime', `'1d'`)

it('commits that wait for no standby, and those that wait for one that is away or frozen', async () => {
  await eventually(['replication_asynchronous'])
  await set('synchronous_standby_names', `'standby'`)
  await eventually([])
  await set('synchronous_commit', 'local')
  await eventually(['replication_asynchronous'])
  await set('synchronous_commit', 'off')
  await eventually(['fsync_off', 'replication_asynchronous'])
  await set('synchronous_commit', 'on')
  await run('alter role current_user set synchronous_commit = off')
  await expect
    .poll(async () => (await doctor(['doctor'])).stdout)
    .toMatch(/synchronous_commit .* is off.*\n.*and the settings of the role and the database/)
  await run('alter role current_user reset synchronous_commit')
  await eventually([])
  await standby.freeze()
  const writer = new pg.Client(test.databaseUrl)
  await writer.connect()
  const written = writer.query('update cellkeep.bootstrap_lock set bootstrapped = true')
  await eventually(['no_synchronous_standby'])
  expect((await doctor(['doctor'])).stdout).toMatch(/confirms nothing: a commit has been waiting for \d+ s/)
  await standby.thaw()
  await written
  await writer.end()
  await eventually([])
  await standby.stop()
  await eventually(['no_synchronous_standby'])
  await set('synchronous_standby_names', `''`)
  await eventually([])
})

it('a standby, and a database that is set read-only', async () => {
  await standby.start(patient)
  const at = shell({ ...env, CELLKEEP_DATABASE_URL: standby.url }, '/')
  const answer = async (cellkeep = doctor) => {
    const { code, stdout, stderr } = await cellkeep(['doctor', '--json'])
    return [code, stdout.match(/"finding":"(.*?)"/)?.[1] ?? stderr]
  }
  expect(await answer(at)).toEqual([1, 'db_read_only'])
  await run('alter database postgres set default_transaction_read_only = on')
  expect(await answer()).toEqual([1, 'db_read_only'])
  await run('set transaction_read_only = off', 'alter database postgres reset default_transaction_read_only')
  await standby.stop()
  await eventually([])
})

it('settings with which a crash loses data, and tables that nobody vacuums', async () => {
  for (const name of ['fsync', 'full_page_writes', 'autovacuum']) await set(name, 'off')
  await eventually(['fsync_off', 'full_page_writes_off', 'autovacuum_off'])
  for (const name of ['fsync', 'full_page_writes', 'autovacuum']) await set(name, 'on')
  await eventually([])
})

it('a full disk, on which nothing that writes can be tried', async () => {
  const refuse = (when: string) =>
    run(`create or replace function refuse() returns event_trigger language plpgsql as
      $$ begin if ${when} then raise 'no space left' using errcode = '53100'; end if; end $$`)
  await refuse('true')
  await run(
    `create event trigger full_disk on ddl_command_start when tag in ('CREATE TABLE') execute function refuse()`,
  )
  expect(await found()).toEqual(['disk_full'])
  const started = await runCellkeep(primary.dir, ['start'], { ...env, CELLKEEP_PORT: '0' })
  expect(started).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The disk of the database is full/),
  })
  await refuse(`current_query() like '%insert%'`)
  expect(await found()).toEqual(['disk_full'])
  await run('drop event trigger full_disk')
  expect(await found()).toEqual([])
})

const old = `now() - interval '8 days'`
/** A delete would look for the grants and edges of each of the many thousand cells. */
const withoutTriggers = 'set session_replication_role = replica'

it('an older timeline than was seen, transactions that run out, and backups that nobody made', async () => {
  const age = (millions: number) =>
    `update pg_database set datfrozenxid = ((txid_current() - ${millions}000000) & 4294967295)::text::xid
      where datname = current_database()`
  await run(age(600), `update audit_position set timeline = '0000000A'`)
  await run(`update schema_migration set applied_at = ${old}`)
  expect(await found()).toEqual(['timeline_went_back', 'wraparound_near', 'backup_old'])
  await run(age(0), 'update audit_position set timeline = server_timeline()')
  await run(`insert into node (id, name, version, known_step, pid, started_at, seen_at, state, info)
    values ('aaaaaaaaaaaaaaaa', 'a', '0.0.1', 'x', 1, now(), now(), 'ready', '{"timeline": 10}')`)
  expect(await found()).toEqual(['timeline_went_back', 'backup_old'])
  // Spelt as the server does, since it is compared with that.
  expect((await doctor(['doctor'])).stdout).toContain('a node has seen 0000000A')
  await run('delete from node')
  expect(await doctor(['backup', join(primary.dir, 'backup')])).toMatchObject({ code: 0 })
  expect(await found()).toEqual([])
})

it('dead rows are compared with the rows that the catalog knows: a promoted standby has counted no live ones', async () => {
  const flush = 'select pg_stat_force_next_flush()'
  await run(
    // More are dead than are allowed of few, and fewer than of as many as there are.
    `insert into cell (data, data_bytes) select '{}', 2 from generate_series(1, 30000)`,
    'analyze cell',
    flush,
    'select pg_stat_reset()',
    withoutTriggers,
    'delete from cell where id in (select id from cell limit 10500)',
    'reset session_replication_role',
    flush,
  )
  const counted = `select n_live_tup::int as live, n_dead_tup::int as dead from pg_stat_user_tables where relname = 'cell'`
  await expect.poll(async () => (await admin.query(counted)).rows[0]).toEqual({ live: 0, dead: 10_500 })
  expect(await found()).toEqual([])
  await run('truncate cell cascade')
})

it('tables without statistics, as `pg_upgrade` leaves them', async () => {
  await run(
    `insert into cell (data, data_bytes) select '{}', 2 from generate_series(1, 60000)`,
    'set allow_system_table_mods = on',
    `delete from pg_statistic where starelid = 'cell'::regclass`,
    'reset allow_system_table_mods',
  )
  const { stdout } = await doctor(['doctor'])
  expect(stdout).toMatch(/no statistics of \w*\.?cell:/)
  expect(await found(['--fix'])).toEqual(['statistics_missing', 'statistics_missing'])
  expect(await found()).toEqual([])
  await run('truncate cell cascade')
})

it('--fix asks before each thing that it does, and leaves the others', async () => {
  await run(
    'alter sequence audit_inbox_written_seq set unlogged',
    'alter table node set (autovacuum_enabled = false)',
    'alter table cell set (autovacuum_enabled = false)',
    `insert into cell (data, data_bytes) select '{}', 2 from generate_series(1, 60000)`,
    withoutTriggers,
    'delete from cell where created_by is null and random() < 0.9',
    'reset session_replication_role',
    'analyze cell',
    `update cluster set backed_up_at = ${old}`,
    'select pg_stat_force_next_flush()',
  )
  const all = ['autovacuum_off', 'unlogged_sequence', 'bloat', 'backup_old']
  await eventually(all)
  expect((await doctor(['doctor'])).stdout).toMatch(/table cell, index \w*cell/)

  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const said: string[] = []
  const asked: string[] = []
  const done = execute(['doctor', '--fix'], {
    stdin,
    stdout: { write: (text) => said.push(text) },
    stderr: {
      write: (text) => {
        const [, finding] = /^(\w+): .* Do it\?/.exec(text) ?? []
        if (!finding) return
        asked.push(finding)
        setImmediate(() => stdin.write(finding === 'bloat' ? 'no\n' : 'yes\n'))
      },
    },
    env,
    cwd: '/',
  })
  expect(await done).toBe(1)
  expect(asked).toEqual(['autovacuum_off', 'unlogged_sequence', 'bloat'])
  expect(said.join('')).toContain(
    'Fixed unlogged_sequence: alter sequence audit_inbox_written_seq set logged\n',
  )
  expect(await found()).toEqual(['bloat', 'backup_old'])
  expect(await found(['--fix'])).toEqual(['bloat', 'backup_old', 'bloat'])
  expect(await found()).toEqual(['backup_old'])
})

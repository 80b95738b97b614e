import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { migratedDatabase } from '../../../test/fresh-database.ts'
import { toUrl } from '../../testing/cluster.ts'
import { execute } from '../main.ts'

test('only indexes that are much larger than their content are rebuilt, and left-overs dropped', async () => {
  await using database = Object.assign(await migratedDatabase(), {
    [Symbol.asyncDispose]: () => database.drop(),
  })
  const env = { CELLKEEP_DATABASE_URL: toUrl({ ...database.connection, schema: undefined }) }
  const run = async (...args: string[]) => {
    let [stdout, stderr] = ['', '']
    const io = {
      stdin: Readable.from([]),
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: (text: string) => (stderr += text) },
    }
    const code = await execute(['reindex', ...args], { ...io, env, cwd: '/' })
    return { code, stdout, stderr }
  }
  const db = await database.open()
  await db.query(
    `insert into cell (data, data_bytes, visibility) select '{}', 2, 'public' from generate_series(1, 30000)`,
  )
  await db.query(
    `insert into account (username, password_hash) select 'a' || n, 'x' from generate_series(1, 20000) n`,
  )
  // The values arrived in no order, which leaves pages half empty.
  expect(await run()).toMatchObject({ code: 0 })
  expect(await run()).toMatchObject({ code: 0, stdout: 'No index needs to be rebuilt.\n' })

  await db.query('delete from cell where random() < 0.9')
  await db.query('vacuum cell')
  // What an interrupted run leaves.
  await db.query('create index cell_pkey_ccnew on cell (id)')
  await db.query(`update pg_index set indisvalid = false where indexrelid = 'cell_pkey_ccnew'::regclass`)
  expect(await run('--table', 'account')).toMatchObject({ stdout: 'No index needs to be rebuilt.\n' })
  expect(await run('--table', 'acount')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('account'),
  })
  const { code, stdout } = await run('--json')
  expect(code).toBe(0)
  const { reindexed } = JSON.parse(stdout)
  expect(reindexed.map((one: { table: string }) => one.table)).toEqual(reindexed.map(() => 'cell'))
  expect(reindexed).toContainEqual(expect.objectContaining({ index: 'cell_pkey' }))
  for (const one of reindexed) expect(one.after_bytes).toBeLessThan(one.before_bytes * 0.7)
  expect((await db.query(`select to_regclass('cell_pkey_ccnew') as left`)).rows).toEqual([{ left: null }])
  expect(await run('--json')).toMatchObject({ stdout: '{"reindexed":[]}\n' })

  await db.query(
    'insert into audit_cell (cell_id, seq) select gen_random_uuid(), n from generate_series(1, 30000) n',
  )
  await db.query('delete from audit_cell where seq % 10 > 0')
  await db.query('vacuum audit_cell')
  expect(JSON.parse((await run('--table', 'audit_cell', '--json')).stdout).reindexed).toEqual([
    expect.objectContaining({ table: 'audit_cell_0', index: 'audit_cell_0_pkey' }),
  ])
})

test('a session that stands in its way is named once, with what ends it', async () => {
  await using database = Object.assign(await migratedDatabase(), {
    [Symbol.asyncDispose]: () => database.drop(),
  })
  const env = { CELLKEEP_DATABASE_URL: toUrl({ ...database.connection, schema: undefined }) }
  const other = await database.open()
  await other.query(`set application_name = 'a long report'; begin; lock table account`)
  const said: string[] = []
  const running = execute(['reindex', '--table', 'account'], {
    stdin: Readable.from([]),
    stdout: { write: () => {} },
    stderr: { write: (text: string) => said.push(text) },
    env,
    cwd: '/',
  })
  await expect.poll(() => said).not.toEqual([])
  // Longer than the next look.
  await other.query('select pg_sleep(1.5); commit')
  expect(await running).toBe(0)
  expect(said).toEqual([
    expect.stringMatching(
      /^Waiting for the server process (\d+) \(a long report\), whose transaction began \d+ s ago: let that end, or run `select pg_terminate_backend\(\1\)`\.\n$/,
    ),
  ])
})

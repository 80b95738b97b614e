import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { ownPostgres } from '../helpers/own-postgres.ts'
import { writeSteps } from '../helpers/planted-steps.ts'
import {
  bootstrap,
  firstAccount,
  runCellkeep,
  type ServerProcess,
  startServer,
  workspace,
} from '../helpers/server-process.ts'

const space = await workspace()
afterAll(() => space.remove())

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A copy of the package as a later release, with more migration steps. */
async function release(version: string, steps: Record<string, string>): Promise<string> {
  const dir = await space.make(`cellkeep-${version}`)
  await mkdir(join(dir, 'bin'))
  for (const name of ['bin', 'src', 'migrations', 'data'])
    await cp(join(root, name), join(dir, name), { recursive: true })
  await symlink(join(root, 'node_modules'), join(dir, 'node_modules'))
  const about = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  await writeFile(join(dir, 'package.json'), JSON.stringify({ ...about, version }))
  writeSteps(join(dir, 'migrations'), steps)
  return join(dir, 'bin', 'cellkeep.js')
}

/** Creates cells one after another, and collects the calls that fail. */
function load(...clients: ServerProcess['client'][]) {
  let isOver = false
  const failed: string[] = []
  let written = 0
  const write = async (client: ServerProcess['client']): Promise<void> => {
    while (!isOver) {
      const made = await client.try.cell_create({ data: { text: 'x' } })
      if (made.ok) written += 1
      else failed.push(`${made.error.reason}`)
      // Leaves processor time to the upgrade.
      await delay(10)
    }
  }
  const writing = clients.map(write)
  return {
    written: () => written,
    end: async () => {
      isOver = true
      await Promise.all(writing)
      return failed
    },
  }
}

const ready = async ({ url }: ServerProcess) => (await fetch(`${url}/ready`)).json()

test('two releases serve one database, while the newer one migrates it and after', async () => {
  const { env: given, open } = await ownPostgres()
  const env = { ...given, CELLKEEP_LIMIT_CELL_CREATE: 'off' }
  const cwd = await space.make('old')
  const next = await release('0.2.0', {
    '9001_column': 'alter table cell add column if not exists extra text collate "C"',
    '9002_index':
      '-- cellkeep: kind=index needs=0.1.0\ncreate index concurrently if not exists cell_extra on cell (extra)',
    '9003_fill': `-- cellkeep: kind=backfill needs=0.1.0
with batch as (
  select id from cell where id > coalesce(($1::jsonb ->> 'id')::uuid, '00000000-0000-0000-0000-000000000000')
  order by id limit least($2, 50)
), changed as (update cell set extra = 'filled' from batch where cell.id = batch.id)
select (select jsonb_build_object('id', id) from batch order by id desc limit 1) as cursor,
       (select count(*)::integer from batch) as rows`,
    '9004_tighten': '-- cellkeep: kind=contract needs=0.2.0\nalter table cell drop column extra',
  })
  const old = await startServer(cwd, env)
  await bootstrap(old)
  const during = load(old.client)
  const db = await open()
  const nodes = async () => (await db.query('select from node')).rowCount
  await expect.poll(nodes).toBe(1)
  await expect.poll(during.written).toBeGreaterThan(100)

  const planned = await runCellkeep(cwd, ['migrate', 'plan', '--json'], env, '', next)
  expect(JSON.parse(planned.stdout.join('')).steps).toMatchObject([
    { step: '9001_column', kind: 'expand', lock: 'ACCESS EXCLUSIVE', cost: 'none', nodes_go_on: true },
    { step: '9002_index', kind: 'index', lock: 'SHARE UPDATE EXCLUSIVE', nodes_go_on: true },
    { step: '9003_fill', kind: 'backfill', nodes_go_on: true },
    { step: '9004_tighten', nodes_go_on: false, nodes_below: [expect.stringContaining('(0.1.0)')] },
  ])
  const refused = await runCellkeep(cwd, ['migrate', 'run'], env, '', next)
  // If a step takes more than a second, lines about its progress precede this one.
  expect(refused).toMatchObject({ code: 3, stderr: expect.stringMatching(/^9004_tighten .*\(0\.1\.0\)/m) })
  const status = await runCellkeep(cwd, ['migrate', 'status'], env, '', next)
  expect(status.stdout[0]).toMatch(/(\d+) of \d+ steps are done\./)
  expect(status.stdout[1]).toMatch(/^9004_tighten +contract +pending$/)
  expect(await during.end()).toEqual([])

  await expect.poll(() => ready(old)).toEqual({ ready: true, warnings: ['schema_newer'] })
  const newer = await startServer(cwd, env, '', next)
  expect(await ready(newer)).toEqual({ ready: true })
  await old.end('SIGKILL')
  const again = await startServer(cwd, env)
  expect(await again.logged('a newer version has migrated the database')).toMatchObject({
    event: 'schema_newer',
  })
  await again.client.account.login(firstAccount)
  const both = load(again.client)
  await expect.poll(both.written).toBeGreaterThan(20)
  expect(await both.end()).toEqual([])

  await again.end('SIGTERM')
  await db.query(`delete from node where version = '0.1.0'`)
  const run = await runCellkeep(cwd, ['migrate', '--yes'], env, '', next)
  expect(run).toMatchObject({ code: 0, stdout: ['applied 9004_tighten'] })
  await newer.end('SIGTERM')
  await expect(startServer(cwd, env)).rejects.toThrow(/0\.1\.0, no longer works .*9004_tighten needs 0\.2\.0/)
})

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { writeBackup } from '../../src/backup/backup.ts'
import { sql } from '../../src/db/db.ts'
import { postmasterPid, serves } from '../../src/embedded/postgres-process.ts'
import { testService } from '../../src/testing/index.ts'
import { auditRows } from '../helpers/audit-rows.ts'
import { cellRows } from '../helpers/cell-rows.ts'
import { entry, runCellkeep, workspace } from '../helpers/server-process.ts'

/** To verify more rows: `VERIFY_ROWS=1000000 npx vitest run test/process/verify.test.ts --test-timeout 3600000`. */
const rows = Number(process.env.VERIFY_ROWS ?? 3_000)

const space = await workspace()
const cwd = await space.make('verify')
const temporary = join(cwd, 'tmp')
await mkdir(temporary)
await chmod(temporary, 0o777)
await chmod(cwd, 0o711)
const env = { TMPDIR: temporary }
const test = await testService()
const { actor_id } = await test.account({ roles: ['keeper', 'admin'] })
// A third are cells, a third rows of the audit log, and a third places in timelines.
for (let left = Math.ceil(rows / 3), batch = 0; left > 0; left -= batch) {
  batch = Math.min(left, 10_000)
  await cellRows(test, batch, { created_by: sql`${actor_id}::uuid` })
  await auditRows(test, batch, { cell_ids: sql`array[gen_random_uuid()]` })
  await test.service.app.db.run(sql`select audit_number()`)
}
const file = join(cwd, 'whole')
await writeBackup({ connectionString: test.databaseUrl, schema: 'cellkeep' }, { to: file, version: '1' })
afterAll(async () => {
  await test.close()
  await space.remove()
})

const left = async (): Promise<string[]> =>
  (await readdir(temporary)).filter((name) => name.startsWith('cellkeep-'))

it('verifies a file on a server of its own, of which nothing is left', async () => {
  const { code, stdout, stderr } = await runCellkeep(cwd, ['restore', file, '--verify', '--json'], env)
  expect([code, stderr]).toEqual([0, ''])
  const told = JSON.parse(stdout[0] as string)
  expect(told).toMatchObject({ findings: [] })
  expect(told.rows).toBeGreaterThan(rows)
  expect(await left()).toEqual([])
})

/** Signals a run as soon as its server is up; resolves to the pid of that server. */
async function ended(signal: NodeJS.Signals): Promise<number> {
  const child: ChildProcess = spawn(process.execPath, [entry, 'restore', file, '--verify'], {
    cwd,
    env: { ...process.env, ...env },
    stdio: 'ignore',
  })
  const exit = once(child, 'exit')
  for (;;) {
    const [name] = await left()
    const db = name && join(temporary, name, 'db')
    const pid = db && (await postmasterPid(db))
    if (!pid) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      continue
    }
    child.kill(signal)
    await exit
    return pid
  }
}

it('a run ended by a signal leaves nothing; what a killed one left is removed by the next', async () => {
  await ended('SIGTERM')
  expect(await left()).toEqual([])

  const pid = await ended('SIGKILL')
  const [name] = await left()
  const db = join(temporary, name as string, 'db')
  expect(await serves(pid, db)).toBe(true)
  expect((await runCellkeep(cwd, ['restore', file, '--verify'], env)).code).toBe(0)
  expect(await left()).toEqual([])
  expect(await serves(pid, db)).toBe(false)
})

it('says what to do where no temporary directory can be used', async () => {
  const missing = { TMPDIR: join(cwd, 'missing') }
  const { code, stderr } = await runCellkeep(cwd, ['restore', file, '--verify'], missing)
  expect([code, stderr]).toEqual([78, expect.stringContaining('Set TMPDIR to a directory')])
})

/** Only root may mount, and not in every container. */
const mounted = `mount -t tmpfs -o size=1m,mode=1777 tmpfs "$TMPDIR"`
const mayMount =
  spawnSync('unshare', ['-m', 'sh', '-c', mounted], { env: { ...process.env, ...env } }).status === 0

it.runIf(mayMount)('says that the disk of the temporary directory is full, and which it is', async () => {
  const child = spawn(
    'unshare',
    ['-m', 'sh', '-c', `${mounted} && exec "$@"`, 'sh', process.execPath, entry, 'restore', file, '--verify'],
    { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const ended = once(child, 'close')
  const said = (await child.stderr.setEncoding('utf8').toArray()).join('')
  expect(await ended).toEqual([3, null])
  expect(said).toBe(
    `The disk of the temporary directory ${temporary} is full. Free space there, or set TMPDIR to a directory on another disk.\n`,
  )
})

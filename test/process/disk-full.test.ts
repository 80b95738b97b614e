import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { connectionTo } from '../../src/embedded/postgres-process.ts'
import { reasonOf } from '../helpers/outcome.ts'
import {
  bootstrap,
  type Environment,
  firstAccount,
  furnishPlace,
  runCellkeep,
  type ServerProcess,
  startServer,
  workspace,
} from '../helpers/server-process.ts'

const run = promisify(execFile)
const mib = 1_048_576
const mounted: string[] = []
const places = await workspace()
/** Only root can mount, and not in every container. */
const why = await mountSmallDisk('probe').then(
  () => undefined,
  (error: Error) => error.message,
)
if (why !== undefined) console.warn(`The tests of a full disk are skipped: ${why}`)
afterAll(async () => {
  for (const dir of mounted) await run('umount', [dir])
  await places.remove()
})

async function mountSmallDisk(name: string): Promise<string> {
  const dir = await places.make(name)
  await run('mount', ['-t', 'tmpfs', '-o', 'size=256m,mode=711', 'tmpfs', dir])
  mounted.push(dir)
  await chmod(dir, 0o711)
  return dir
}

/** A server on a disk of its own, which the test can fill up. */
async function onSmallDisk(name: string, env: Environment = {}) {
  const cwd = await mountSmallDisk(name)
  await furnishPlace(cwd)
  const server = await startServer(cwd, {
    CELLKEEP_COOKIE_SECURE: 'false',
    CELLKEEP_LIMIT_CELL_CREATE: 'off',
    CELLKEEP_HASH_CONCURRENCY: '1',
    ...env,
  })
  onTestFinished(async () => void (await server.end('SIGKILL')))
  await bootstrap(server)
  const ballast = join(cwd, 'ballast')
  return {
    server,
    /** Leaves roughly this many bytes free; the database writes too. */
    fill: async (left: number) => {
      const file = await open(ballast, 'a')
      try {
        for (;;) {
          const { bavail, bsize } = await statfs(cwd)
          const length = Math.min(mib, bavail * bsize - left)
          if (length <= 0) return
          await file.write(Buffer.alloc(length))
        }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        await file.close()
      }
    },
    free: () => rm(ballast),
  }
}

/** A cell that does not compress. */
const create = ({ client }: ServerProcess) =>
  client.cell_create({ data: { a: randomBytes(100_000).toString('base64') }, visibility: 'public' })

async function readsGoOn({ client }: ServerProcess, id: string): Promise<void> {
  expect((await client.cell_get({ id })).cell.id).toBe(id)
  expect((await client.cell_list({ limit: 5 })).cells.length).toBeGreaterThan(0)
  expect(await client.account_verify()).toMatchObject({ username: firstAccount.username })
}

it.skipIf(why !== undefined)(
  'a disk that fills up is reported; content is refused while everything else works',
  async () => {
    const { server, fill, free } = await onSmallDisk('watched')
    const { cell } = await create(server)
    await fill(30 * mib)
    await server.logged('the disk of the data dir is nearly full')
    expect(await reasonOf(create(server))).toBe('ok')
    const doctor = async () => (await runCellkeep(server.cwd, ['doctor', '--json'])).stdout.join('\n')
    expect(await doctor()).toContain('"disk_low"')

    await fill(8 * mib)
    await server.logged('the disk of the data dir is full; content is refused until there is space')
    expect(await doctor()).toContain('"disk_full"')
    expect(await server.client.try.cell_create({ data: {} })).toMatchObject({
      ok: false,
      error: { status: 503, reason: 'storage_full' },
    })
    const { id } = cell
    expect(await reasonOf(server.client.cell_update({ cell_id: id, data: { b: 1 } }))).toBe('storage_full')
    expect(await reasonOf(server.client.cell_clone({ source_id: id }))).toBe('storage_full')
    expect(
      await reasonOf(server.client.cell_item_insert({ parent_id: id, child_id: id, position: '1' })),
    ).toBe('storage_full')
    await readsGoOn(server, id)
    await server.client.account.login({ ...firstAccount })
    expect(await reasonOf(server.client.account_session_list())).toBe('ok')

    await free()
    await server.logged('the disk of the data dir has space again')
    expect(await reasonOf(create(server))).toBe('ok')
    expect(await doctor()).not.toContain('disk_')
    expect((await server.end('SIGTERM')).code).toBe(0)
  },
)

it.skipIf(why !== undefined)('on a full disk writes answer storage_full, and reads work', async () => {
  const { server, fill, free } = await onSmallDisk('full', { CELLKEEP_DISK_RESERVE: 'off' })
  const { cell } = await create(server)
  await fill(0)
  const reasons = new Set<string>()
  for (let count = 0; count < 60; count++) reasons.add(await reasonOf(create(server)))
  // Writes that fit into existing pages still succeed.
  reasons.delete('ok')
  expect([...reasons]).toEqual(['storage_full'])
  await readsGoOn(server, cell.id)
  const { code, stdout, stderr } = await runCellkeep(server.cwd, ['doctor', '--json'])
  expect([code, stderr]).toEqual([1, ''])
  expect(stdout.map((line) => JSON.parse(line).finding)).toEqual(['disk_full'])
  await free()
  expect(await reasonOf(create(server))).toBe('ok')
  expect((await server.end('SIGTERM')).code).toBe(0)
})

it.skipIf(why !== undefined)(
  'if not even the write-ahead log has room, everything recovers once there is room',
  async () => {
    const { server, fill, free } = await onSmallDisk('panic', { CELLKEEP_DISK_RESERVE: 'off' })
    const { cell } = await create(server)
    await fill(0)
    const client = new pg.Client(connectionTo(join(server.cwd, '.cellkeep', 'socket'), 'cellkeep'))
    const ended = new Promise<void>((resolve) => client.once('end', resolve))
    client.on('error', () => {})
    await client.connect()
    // Fills the last WAL file; PostgreSQL stops when it cannot create another.
    const write = async () => {
      for (;;) await client.query(`select pg_logical_emit_message(false, 'x', repeat('x', 1000000))`)
    }
    await Promise.all([ended, expect(write()).rejects.toThrow()])
    await free()
    await expect
      .poll(() => reasonOf(server.client.cell_get({ id: cell.id })), { timeout: 40_000, interval: 200 })
      .toBe('ok')
    await readsGoOn(server, cell.id)
    expect(await reasonOf(create(server))).toBe('ok')
    expect((await server.end('SIGTERM')).code).toBe(0)
  },
)

it.skipIf(why !== undefined)('the doctor tells a full disk on which the database cannot start', async () => {
  const { server, fill } = await onSmallDisk('stopped')
  expect((await server.end('SIGTERM')).code).toBe(0)
  await fill(0)
  const { code, stdout, stderr } = await runCellkeep(server.cwd, ['doctor', '--json'])
  expect([code, JSON.parse(stderr).reason]).toEqual([3, 'database_start_failed'])
  expect(stdout.map((line) => JSON.parse(line).finding)).toContain('disk_full')
})

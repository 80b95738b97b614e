import { mkdir, readdir, rmdir, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import {
  alive,
  isRoot,
  query,
  serverProcesses,
  start,
  startChild,
  testDirectory,
} from '../../test/embedded.ts'
import { copyDirectory, furnish } from '../../test/kept-database.ts'
import { createService } from '../create-service.ts'
import { takeLocks } from './locks.ts'
import type { Place } from './place.ts'
import { connect, disconnect, type Held } from './postgres-process.ts'

const dir = await testDirectory()
/** Shared by tests that leave it unchanged: stopped, with one row in `kept`. */
const path = join(dir, 'data')

const mode = async (...path: string[]) => ((await stat(join(...path))).mode & 0o777).toString(8)

beforeAll(async () => {
  await furnish(path)
  const { connection, close } = await start(path)
  await query(connection, 'create table kept as select 1 as n')
  await close()
})

test('a first start makes private directories and a database that is reachable through its socket only', async () => {
  const made = join(dir, 'first')
  const { connection, close } = await start(made)
  expect(await mode(made)).toBe(isRoot ? '711' : '700')
  expect(await mode(made, 'db')).toBe('700')
  expect(await mode(made, 'socket')).toBe('700')
  expect(await mode(made, 'db.log')).toBe('600')
  expect((await stat(join(made, 'db'))).uid).not.toBe(0)
  // Only the bundled programs need `lib`.
  expect((await readdir(made)).filter((name) => name !== 'lib')).toEqual(['db', 'db.log', 'socket'])
  const settings = `select current_setting('listen_addresses') as tcp, current_setting('fsync') as fsync,
    current_setting('server_encoding') as encoding, current_database() as database`
  expect(await query(connection, settings)).toEqual([
    { tcp: '', fsync: 'on', encoding: 'UTF8', database: 'cellkeep' },
  ])
  await close()
})

test('a restart keeps what was written, and a stop leaves no process of the database', async () => {
  const child = await startChild({ dataDir: path })
  expect(await query(child.connection, 'select n from kept')).toEqual([{ n: 1 }])
  const pids = await serverProcesses(path)
  expect(pids.length).toBeGreaterThan(3)
  await child.close()
  expect(await alive(pids)).toEqual([])
})

test('a second serving process is refused whichever path it uses, writes nothing, and the first goes on', async () => {
  const first = await startChild({ dataDir: path })
  const link = join(dir, 'link')
  await symlink(path, link)
  const before = await listing(path)
  const refused = await Promise.all([startChild({ dataDir: path }), startChild({ dataDir: link })])
  for (const second of refused) {
    expect(second).toMatchObject({ event: 'failed', reason: 'data_dir_locked' })
    expect(second.message).toContain(path)
    expect(second.message).toContain(`process ${first.pid}`)
    expect(await second.exited).toBe(75)
  }
  expect(await listing(path)).toEqual(before)
  expect(await query(first.connection, 'select n from kept')).toEqual([{ n: 1 }])
  await first.close()
})

test('of two services made together in one process one starts, and the other says to keep one', async () => {
  const made = join(dir, 'together')
  const options = { data_dir: made, log: pino({ level: 'silent' }) }
  const both = await Promise.allSettled([createService(options), createService(options)])
  const refused = both.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  expect(refused).toMatchObject([{ reason: 'data_dir_locked', exitCode: 75 }])
  expect(refused[0].message).toContain(
    `${made} is in use by another service of this process. Keep one service for the whole process,`,
  )
  for (const one of both) if (one.status === 'fulfilled') await one.value.close()
  await (await createService(options)).close()
})

test('a service that took over from another of its process is named to a third', async () => {
  const command = await start(path, 'command')
  const connected = async () => (await connect(command.connection.host as string)) as Held
  const place = { dataDir: path } as Place
  const [first, second, third] = await Promise.all([connected(), connected(), connected()])
  const late = Promise.withResolvers<void>()
  await takeLocks({ ...first, ended: late.promise }, place, 'serve')
  await disconnect(first)
  await takeLocks(second, place, 'serve')
  late.resolve()
  await expect(takeLocks(third, place, 'serve')).rejects.toThrow('another service of this process')
  await disconnect(second)
  await disconnect(third)
  await command.close()
})

test('a command beside a serving process uses its database and leaves it running', async () => {
  const server = await startChild({ dataDir: path })
  const pids = await serverProcesses(path)
  const command = await startChild({ dataDir: path, role: 'command' })
  expect(command.connection).toEqual(server.connection)
  expect(await query(command.connection, 'select n from kept')).toEqual([{ n: 1 }])
  await command.close()
  expect(await serverProcesses(path)).toContain(pids[0])
  expect(await query(server.connection, 'select n from kept')).toEqual([{ n: 1 }])
  await server.close()
})

test('a command alone starts the database and stops it', async () => {
  const command = await startChild({ dataDir: path, role: 'command' })
  const pids = await serverProcesses(path)
  expect(pids).not.toEqual([])
  await command.close()
  expect(await alive(pids)).toEqual([])
})

test('a command never ends a database that a start has adopted meanwhile', async () => {
  const command = await startChild({ dataDir: path, role: 'command' })
  const server = await startChild({ dataDir: path })
  const pids = await serverProcesses(path)
  await command.close()
  expect(await query(server.connection, 'select n from kept')).toEqual([{ n: 1 }])
  expect((await serverProcesses(path))[0]).toBe(pids[0])
  await server.close()
  expect(await alive(pids)).toEqual([])
})

test('of two first starts at once one serves and the other is refused', async () => {
  const made = join(dir, 'both')
  const both = await Promise.all([startChild({ dataDir: made }), startChild({ dataDir: made })])
  expect(both.map(({ event }) => event).sort()).toEqual(['failed', 'ready'])
  const served = both.find(({ event }) => event === 'ready')
  expect(await query(served?.connection ?? {}, 'select 1 as n')).toEqual([{ n: 1 }])
  expect((await readdir(made)).filter((name) => name.startsWith('db.making'))).toEqual([])
  await Promise.all(both.map((child) => child.close()))
  expect(await serverProcesses(made)).toEqual([])
})

test('concurrent users always find a database, and the last one stops it', async () => {
  const visit = async (times: number) => {
    for (let i = 0; i < times; i++) {
      const { connection, close } = await start(path, 'command')
      expect(await query(connection, 'select n from kept')).toEqual([{ n: 1 }])
      await close()
    }
  }
  await Promise.all([visit(4), visit(4), visit(4)])
  expect(await serverProcesses(path)).toEqual([])
})

test('a data dir whose path is too long for a socket has it in a private directory elsewhere', async () => {
  const parent = join(dir, 'x'.repeat(90))
  await mkdir(parent, { mode: 0o711 })
  const long = join(parent, 'data')
  await copyDirectory(path, long)
  const first = await start(long)
  onTestFinished(() => rmdir(first.connection.host as string))
  const second = await start(long, 'command')
  expect(second.connection).toEqual(first.connection)
  const socketDir = first.connection.host as string
  expect(socketDir.startsWith(long)).toBe(false)
  expect(await mode(socketDir)).toBe('700')
  expect(await query(second.connection, 'select n from kept')).toEqual([{ n: 1 }])
  await second.close()
  await first.close()
})

test('a copied data dir with a long path does not join the database of the original', async () => {
  const parent = join(dir, 'y'.repeat(90))
  await mkdir(parent, { mode: 0o711 })
  const long = join(parent, 'data')
  await (await start(long, 'command')).close()
  const copy = join(parent, 'copy')
  await copyDirectory(long, copy)
  const original = await start(long)
  onTestFinished(() => rmdir(original.connection.host as string))
  const other = await start(copy)
  onTestFinished(() => rmdir(other.connection.host as string))
  expect(other.connection.host).not.toBe(original.connection.host)
  await other.close()
  await original.close()
})

/** Names, sizes and times of the files in a data dir, except those of the database itself. */
async function listing(path: string) {
  const names = (await readdir(path)).sort()
  return Promise.all(
    ['', ...names].map(async (name) => {
      const { mtimeMs, size } = await stat(join(path, name))
      return name === 'db' ? name : { name, mtimeMs, size }
    }),
  )
}

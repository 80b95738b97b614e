import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { mkdir, open, readdir, readFile, readlink, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import {
  alive,
  postgresBin,
  query,
  serverProcesses,
  spawnChild,
  start,
  startChild,
  testDirectory,
} from '../../test/embedded.ts'
import { copyDirectory, furnish } from '../../test/kept-database.ts'
import { silentLog } from '../log/log.ts'
import { startEmbedded } from './embedded.ts'
import { postmasterPid } from './postgres-process.ts'
import { databaseUser, runAs } from './user.ts'

const dir = await testDirectory()
/** Tests that leave it stopped and unchanged use it directly; the others copy it. */
const seed = join(dir, 'seed')
let copies = 0

async function dataDir(): Promise<string> {
  const path = join(dir, `data-${++copies}`)
  await copyDirectory(seed, path)
  return path
}

/** Resolves once the database accepts statements; tries for as long as the test may last. */
const answers = (connection: pg.ClientConfig) =>
  expect.poll(() => query(connection, 'select n from kept').catch((error) => error))

const write = (connection: pg.ClientConfig, n: number) => query(connection, `insert into kept values (${n})`)

const back = ({ event, text }: { event: string; text: string }) =>
  event === 'log' && /^embedded database (started|adopted)$/.test(text)

beforeAll(async () => {
  await furnish(seed)
  const { connection, close } = await start(seed)
  await query(connection, 'create table kept (n int)')
  await close()
})

test('a server that another process stops before the one that starts it has connected is started again', async () => {
  const path = await dataDir()
  const starting = start(path)
  let server: number | undefined
  while (server === undefined) server = await postmasterPid(join(path, 'db'))
  process.kill(server, 'SIGINT')
  const { connection, close } = await starting
  expect(await query(connection, 'select count(*)::int as n from kept')).toEqual([{ n: 0 }])
  expect((await serverProcesses(path))[0]).not.toBe(server)
  await close()
})

test('after kill -9 of the serving process the next start adopts its database', async () => {
  const path = await dataDir()
  const first = await startChild({ dataDir: path })
  await write(first.connection, 1)
  const [server] = await serverProcesses(path)
  await first.kill()
  expect(await alive([server as number])).toEqual([server])
  const second = await startChild({ dataDir: path })
  expect(second.connection).toEqual(first.connection)
  expect((await serverProcesses(path))[0]).toBe(server)
  expect(await query(second.connection, 'select n from kept')).toEqual([{ n: 1 }])
  await second.close()
  expect(await alive([server as number])).toEqual([])
})

test('after kill -9 of the process and its database the next start has every acknowledged write', async () => {
  const path = await dataDir()
  const first = await startChild({ dataDir: path })
  await write(first.connection, 1)
  const [server] = await serverProcesses(path)
  process.kill(server as number, 'SIGKILL')
  await first.kill()
  const second = await startChild({ dataDir: path })
  expect(await query(second.connection, 'select n from kept')).toEqual([{ n: 1 }])
  await second.close()
})

test('a database that is killed under its serving process comes back at the same place, lock included', async () => {
  const path = await dataDir()
  const child = await startChild({ dataDir: path })
  await write(child.connection, 1)
  for (const victim of ['server', 'backend']) {
    const before = await serverProcesses(path)
    const seen = child.seen.length
    // The first child lives as long as the server; a later one may be a short-lived worker that is gone by now.
    process.kill(before[victim === 'server' ? 0 : 1] as number, 'SIGKILL')
    await child.saw((event) => child.seen.indexOf(event) >= seen && back(event))
    await answers(child.connection).toEqual([{ n: 1 }])
    const second = await startChild({ dataDir: path })
    expect(second).toMatchObject({ event: 'failed', reason: 'data_dir_locked' })
    expect(second.message).toContain(`process ${child.pid}`)
  }
  const pids = await serverProcesses(path)
  await child.close()
  expect(await alive(pids)).toEqual([])
})

test('a database whose socket is deleted under its serving process is reached again', async () => {
  const path = await dataDir()
  const child = await startChild({ dataDir: path })
  await write(child.connection, 1)
  const [server] = await serverProcesses(path)
  await rm(join(path, 'socket'), { recursive: true })
  await answers(child.connection).toEqual([{ n: 1 }])
  expect((await serverProcesses(path))[0]).not.toBe(server)
  await child.close()
  expect(await serverProcesses(path)).toEqual([])
})

test('a socket that cannot come back where it was is reported, and a stop ends its database', async () => {
  const parent = join(dir, 'x'.repeat(90))
  await mkdir(parent, { mode: 0o711 })
  const path = join(parent, 'data')
  await copyDirectory(seed, path)
  const child = await startChild({ dataDir: path })
  await rm(join(path, 'socket'))
  await rm(child.connection.host as string, { recursive: true })
  await child.saw(({ text }) => /gone, and its directory too; restart the server$/.test(text))
  await child.close()
  await rm(await readlink(join(path, 'socket')), { recursive: true })
  expect(await serverProcesses(path)).toEqual([])
})

test('a stop while the database is being restarted leaves nothing running', async () => {
  const path = await dataDir()
  const child = await startChild({ dataDir: path })
  const [server] = await serverProcesses(path)
  process.kill(server as number, 'SIGKILL')
  await child.saw(({ text }) => text === 'embedded database lost; starting it again')
  await child.close()
  expect(await serverProcesses(path)).toEqual([])
})

test('a serving process that loses its data dir to another one is told so', async () => {
  const path = await dataDir()
  const child = await startChild({ dataDir: path })
  const [server] = await serverProcesses(path)
  process.kill(child.pid, 'SIGSTOP')
  process.kill(server as number, 'SIGKILL')
  const other = await start(path)
  process.kill(child.pid, 'SIGCONT')
  expect(await child.saw(({ event }) => event === 'lost')).toMatchObject({ reason: 'data_dir_locked' })
  await child.close()
  expect(await query(other.connection, 'select count(*)::int as n from kept')).toEqual([{ n: 0 }])
  await other.close()
})

test('a database that vanishes under its serving process is never replaced by an empty one', async () => {
  const path = await dataDir()
  const child = await startChild({ dataDir: path })
  const [server] = await serverProcesses(path)
  await rename(join(path, 'db'), join(path, 'elsewhere'))
  process.kill(server as number, 'SIGKILL')
  await child.saw(({ text }) => text === 'embedded database cannot be started; trying again')
  expect(await readdir(path)).not.toContain('db')
  await rename(join(path, 'elsewhere'), join(path, 'db'))
  await answers(child.connection).toEqual([])
  await child.close()
})

test('a first start that is killed halfway is repaired by the next', async () => {
  const path = join(dir, 'half')
  const child = spawnChild({ dataDir: path })
  const made = await appears(path, (name) => name.startsWith('db.making-'))
  await child.kill()
  expect(await readdir(path)).not.toContain('db')
  const next = await startChild({ dataDir: path })
  expect(await query(next.connection, 'select 1 as n')).toEqual([{ n: 1 }])
  expect(await readdir(path)).not.toContain(made)
  await next.close()
})

test('a lock file whose pid now belongs to another process does not keep the database from starting', async () => {
  const path = await dataDir()
  const user = await databaseUser(join(path, 'db'))
  // A process of the same user: PostgreSQL itself would refuse to start.
  const sleeper = spawn('sleep', ['60'], runAs(user))
  onTestFinished(() => void sleeper.kill())
  await once(sleeper, 'spawn')
  const stale = `${sleeper.pid}\n${join(path, 'db')}\n0\n5432\n${join(path, 'socket')}\n\n0 0\nready\n`
  await writeFile(join(path, 'db', 'postmaster.pid'), stale)
  await writeFile(join(path, 'socket', '.s.PGSQL.5432.lock'), stale)
  const { connection, close } = await start(path, 'command')
  expect(await query(connection, 'select count(*)::int as n from kept')).toEqual([{ n: 0 }])
  await close()
  expect(await alive([sleeper.pid as number])).toEqual([sleeper.pid])
})

test.each([-3600, 3600])(
  'an empty lock file, %i s away from the clock of this machine, is of a dead server',
  async (seconds) => {
    const path = await dataDir()
    const lockFile = join(path, 'db', 'postmaster.pid')
    await writeFile(lockFile, '')
    const at = Date.now() / 1000 + seconds
    await utimes(lockFile, at, at)
    const { connection, close } = await start(path, 'command')
    expect(await query(connection, 'select count(*)::int as n from kept')).toEqual([{ n: 0 }])
    await close()
  },
)

test('a database whose server cannot be reached from here, as over a network file system, is left alone', async () => {
  const path = await dataDir()
  const lockFile = join(path, 'db', 'postmaster.pid')
  await writeFile(lockFile, `1\n${join(path, 'db')}\n`)
  const log = await open(join(path, 'db.log'), 'a')
  await once(spawn('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', log.fd] }), 'exit')
  const refused = await startChild({ dataDir: path })
  expect(refused).toMatchObject({ event: 'failed', reason: 'data_dir_locked' })
  expect(refused.message).toContain(path)
  expect(await refused.exited).toBe(75)
  expect(await readFile(lockFile, 'utf8')).toMatch(/^1\n/)
  await log.close()
  const { connection, close } = await start(path)
  expect(await query(connection, 'select count(*)::int as n from kept')).toEqual([{ n: 0 }])
  await close()
})

test('starts that wait for a data dir that is held elsewhere, or for each other, end when asked to stop', async () => {
  const path = await dataDir()
  const log = await open(join(path, 'db.log'), 'a')
  await once(spawn('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', log.fd] }), 'exit')
  await rm(join(path, 'lib'), { recursive: true, force: true })
  const ended: string[] = []
  const begin = (name: string) => {
    const stop = new AbortController()
    const starting = startEmbedded({
      dataDir: path,
      role: 'serve',
      postgresBin,
      log: silentLog,
      stop: stop.signal,
    })
    return async () => {
      stop.abort()
      await expect(starting).rejects.toMatchObject({ reason: 'interrupted' })
      ended.push(name)
    }
  }
  const begun = Promise.withResolvers<void>()
  const watcher = watch(path, () => begun.resolve())
  const first = begin('first')
  await begun.promise
  watcher.close()
  const [second, third] = [begin('second'), begin('third')]
  await Promise.all([second(), third()])
  await first()
  expect(ended).toEqual(['second', 'third', 'first'])
  expect(await serverProcesses(path)).toEqual([])
  await log.close()
})

test('a serving process of another container is named with its host', async () => {
  const path = await dataDir()
  const { connection, close } = await start(path, 'command')
  const holder = new pg.Client({
    ...connection,
    database: 'postgres',
    application_name: 'cellkeep serve pid=1 on box-1',
  })
  await holder.connect()
  await holder.query(`select pg_advisory_lock(${0x63656c6c}, 1)`)
  const refused = await startChild({ dataDir: path })
  expect(refused.message).toContain(`in use by process 1 of box-1, another container or machine. Stop`)
  expect(await refused.exited).toBe(75)
  await holder.end()
  await close()
})

test('a database that cannot start is reported with the last lines of its log', async () => {
  const path = await dataDir()
  await writeFile(join(path, 'db', 'postgresql.auto.conf'), 'no_such_setting = 1\n')
  const failed = await start(path).catch((error) => error)
  expect(failed).toMatchObject({ reason: 'database_start_failed', exitCode: 3 })
  expect(failed.message).toContain('unrecognized configuration parameter "no_such_setting"')
  expect(failed.message).toContain(join(path, 'db.log'))
})

test('the log of the database has no values of failed statements', async () => {
  const { connection, close } = await start(seed, 'command')
  await expect(
    query(connection, 'create temp table t (n int unique); insert into t values (1), (1) -- secret'),
  ).rejects.toMatchObject({
    code: '23505',
  })
  await close()
  expect(await readFile(join(seed, 'db.log'), 'utf8')).not.toMatch(/secret|duplicate|Key \(n\)/)
})

test('Ctrl-C in the terminal does not reach the database', async () => {
  const child = await startChild({ dataDir: seed })
  const [server] = await serverProcesses(seed)
  const group = async (pid: number) =>
    (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')[2]
  expect(await group(server as number)).toBe(String(server))
  expect(await group(child.pid)).not.toBe(String(server))
  await child.close()
})

/** Resolves to the first matching entry of a directory that may not exist yet. */
async function appears(path: string, matches: (name: string) => boolean): Promise<string> {
  const watcher = watch(dir, () => look())
  let found: (name: string) => void
  let inner: ReturnType<typeof watch> | undefined
  const result = new Promise<string>((resolve) => {
    found = resolve
  })
  const look = async () => {
    const names = await readdir(path).catch(() => undefined)
    if (names === undefined) return
    inner ??= watch(path, () => look())
    const name = (await readdir(path)).find(matches)
    if (name !== undefined) found(name)
  }
  await look()
  return result.finally(() => {
    watcher.close()
    inner?.close()
  })
}

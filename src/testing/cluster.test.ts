import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { access, chmod, mkdtemp, realpath, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { keptDatabase } from '../../test/kept-database.ts'
import { postmasterPid, serves } from '../embedded/postgres-process.ts'
import { cloneDatabase, sharedCluster, startCluster, toUrl } from './cluster.ts'

/** The argument with which a script gets a copy: one test of `initdb` is enough. */
const kept = `{ from: ${JSON.stringify(keptDatabase())} }`

const query = async (connection: pg.ClientConfig, text: string) => {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test('many copies of one template are made at once and are apart from each other', async () => {
  const { connection, template } = await sharedCluster()
  const copies = await Promise.all(Array.from({ length: 6 }, () => cloneDatabase(connection, template)))
  await Promise.all(
    copies.map((copy, index) => query(copy.connection, `create table t as select ${index} as n`)),
  )
  const seen = await Promise.all(copies.map((copy) => query(copy.connection, 'select n from t')))
  expect(seen).toEqual(copies.map((_, index) => [{ n: index }]))
  await Promise.all(copies.map((copy) => copy.drop()))
  const left = await query(
    connection,
    `select datname from pg_database where datname = '${copies[0]?.connection.database}'`,
  )
  expect(left).toEqual([])
})

test('a copy is dropped while connections to it are open', async () => {
  const { connection, template } = await sharedCluster()
  const copy = await cloneDatabase(connection, template)
  const client = new pg.Client(copy.connection)
  const ended = new Promise((resolve) => client.on('error', resolve))
  await client.connect()
  await copy.drop()
  expect(await ended).toMatchObject({ code: '57P01' })
})

test('a cluster dies with its process, even when that is killed', async () => {
  const script = `import { startCluster } from ${JSON.stringify(new URL('./cluster.ts', import.meta.url).href)}
    const { connection } = await startCluster(${kept})
    console.log(connection.host)
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [host] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  const dir = host.trim()
  const server = await postmasterPid(join(dir, 'db'))
  expect(server).toBeGreaterThan(0)
  child.kill('SIGKILL')
  await expect.poll(() => access(dir).catch(({ code }) => code)).toBe('ENOENT')
  expect(await serves(server as number, join(dir, 'db'))).toBe(false)
})

test('a process that forgets its cluster ends, and the cluster with it', async () => {
  const script = `import { startCluster } from ${JSON.stringify(new URL('./cluster.ts', import.meta.url).href)}
    console.log((await startCluster(${kept})).connection.host)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  await expect.poll(() => access(stdout.trim()).catch(({ code }) => code)).toBe('ENOENT')
})

test('the connection by which databases are copied is opened anew when it was lost, and keeps no process alive', async () => {
  const script = `import { cloneDatabase, startCluster } from ${JSON.stringify(new URL('./cluster.ts', import.meta.url).href)}
    import pg from 'pg'
    const { connection } = await startCluster(${kept})
    const first = await cloneDatabase(connection, 'template1')
    const client = new pg.Client(first.connection)
    await client.connect()
    await client.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', ['postgres'])
    await client.end()
    const second = await cloneDatabase(connection, 'template1')
    await Promise.all([first.drop(), second.drop()])
    console.log('dropped')`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  expect(stdout.trim()).toBe('dropped')
})

test('a service that cannot be made leaves no database', async () => {
  const { connection } = await sharedCluster()
  // The owner tells it from the databases of other tests.
  const owner = `kit_${randomBytes(4).toString('hex')}`
  await query(connection, `create role ${owner} login superuser`)
  onTestFinished(() => void query(connection, `drop owned by ${owner}; drop role ${owner}`))
  const script = `import { testService } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
    await testService({ traces: {} }).catch((error) => console.log(error.message))
    process.exit()`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    env: {
      ...process.env,
      CELLKEEP_TEST_DATABASE_URL: toUrl({ ...connection, user: owner, schema: undefined }),
    },
  })
  expect(stdout).toContain('option traces')
  const left = await query(connection, `select datname from pg_database where datdba = '${owner}'::regrole`)
  expect(left).toEqual([])
})

test('a cluster lies where it is told to, and leaves no directory when it is stopped', async () => {
  const within = await realpath(await mkdtemp(join(tmpdir(), 'ck-')))
  // If the test runs as root, the user of the database must be able to enter.
  await chmod(within, 0o711)
  onTestFinished(() => rmdir(within))
  const { connection, stop } = await startCluster({ within })
  expect(dirname(connection.host as string)).toBe(within)
  expect(await query(connection, 'select current_user as name')).toEqual([{ name: 'cellkeep' }])
  await stop()
  await expect(access(connection.host as string)).rejects.toMatchObject({ code: 'ENOENT' })
})

import dns from 'node:dns/promises'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { migratedDatabase } from '../../../test/fresh-database.ts'
import { postgresProxy } from '../../../test/helpers/postgres-proxy.ts'
import { parseDatabaseUrl } from '../../config/database-url.ts'
import { openDatabase, sql } from '../db.ts'
import { clientConfig } from './connection.ts'
import { dial } from './dial.ts'

const database = await migratedDatabase()
const passOn = (near: Socket, far: Socket): void => void near.pipe(far).pipe(near)
const proxy = await postgresProxy(database.connection, passOn)
const { port, user, database: name } = proxy.connection
afterAll(async () => {
  await proxy.close()
  await database.drop()
})

/** Resolves to its port at 127.0.0.1. */
async function listener(heard: (socket: Socket) => void): Promise<number> {
  const server = createServer(heard).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

function open(hosts: string, query = '', waitMs = 5_000) {
  const connectionString = `postgres://${user}@${hosts}/${name}${query}`
  const db = openDatabase({
    connection: { connectionString, schema: database.connection.schema },
    poolMax: 4,
    waitMs,
    statementTimeoutMs: 10_000,
    onError: () => {},
  })
  onTestFinished(() => db.close())
  return db
}

describe('a list of servers', () => {
  it('is tried in order, past those that are dead, silent or at a dead address, within 5 s', async () => {
    let tried = 0
    const silent = await listener((socket) => {
      tried += 1
      onTestFinished(() => void socket.destroy())
    })
    const began = performance.now()
    // Only the second address of `localhost` can be reached.
    vi.spyOn(dns, 'lookup').mockImplementation((async () => [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ]) as never)
    onTestFinished(() => void vi.restoreAllMocks())
    const db = open(`127.0.0.1:1,127.0.0.1:${silent},localhost:${port}`, '?target_session_attrs=read-write')
    expect(await db.readOnly.one(sql`select 1 as n`)).toEqual({ n: 1 })
    expect(performance.now() - began).toBeLessThan(5_000)
    // From now on, the address that answered is asked first.
    await Promise.all([1, 2, 3].map(() => db.run(sql`select pg_sleep(0.1)`)))
    expect(tried).toBe(1)
  })

  it('resolves names anew, so that the next use follows a name that moved', async () => {
    let where = ['127.0.0.2']
    vi.spyOn(dns, 'lookup').mockImplementation((async () =>
      where.map((address) => ({ address, family: 4 }))) as never)
    onTestFinished(() => void vi.restoreAllMocks())
    const db = open(`db.example:${port}`)
    setTimeout(() => {
      where = ['127.0.0.1']
    }, 300)
    expect(await db.readOnly.one(sql`select 1 as n`)).toEqual({ n: 1 })
  })

  it('is tried without the start-up options that a pooler refuses, and refused if they are not in force', async () => {
    let sent = ''
    const picky = await postgresProxy(database.connection, (near, far) => {
      near.once('data', (first: Buffer) => {
        if (first.includes('options')) {
          const text = 'SFATAL\0C08P01\0Munsupported startup parameter: options\0\0'
          const head = Buffer.from('E\0\0\0\0')
          head.writeInt32BE(4 + text.length, 1)
          near.end(Buffer.concat([head, Buffer.from(text)]))
          return
        }
        sent = first.toString('latin1')
        far.write(first)
        passOn(near, far)
      })
    })
    onTestFinished(picky.close)
    const db = open(`127.0.0.1:${picky.connection.port}`, '', 0)
    await expect(db.readOnly.rows(sql`select`)).rejects.toMatchObject({
      data: { reason: 'service_unavailable' },
      cause: { message: expect.stringContaining(`statement_timeout = '10000ms'`) },
    })
    expect(sent).toContain('cellkeep')
    const client = await database.open()
    for (const setting of [
      `statement_timeout = '10s'`,
      `idle_in_transaction_session_timeout = '30s'`,
      `timezone = 'UTC'`,
      'search_path = cellkeep, public',
    ])
      await client.query(`alter database ${name} set ${setting}`)
    await expect.poll(() => db.readOnly.rows(sql`select 1 as n`).catch(() => [])).toEqual([{ n: 1 }])
  })
})

it('a random order gives every server the same chance to come first', async () => {
  onTestFinished(() => void vi.restoreAllMocks())
  const random = vi.spyOn(Math, 'random')
  for (const one of [0.9, 0.5, 0.1]) random.mockReturnValueOnce(one)
  const tried: unknown[] = []
  const connectionString = 'postgres://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/none?load_balance_hosts=random'
  const dialled = dial({
    connection: { connectionString, schema: undefined },
    config: clientConfig,
    judge: async () => {},
    tried: (error) => tried.push((error as { port?: number }).port),
  })
  await expect(dialled).rejects.toThrow('ECONNREFUSED')
  expect(tried).toEqual([3, 2, 1])
})

describe('a database URL', () => {
  const servers = (text: string) => {
    const url = parseDatabaseUrl(text)
    return typeof url === 'string' ? url : url.servers.map(({ host, port }) => [host, port])
  }

  it('has the forms of libpq', () => {
    expect(servers('postgres://u:p@one:1,two,[::1]:3/db')).toEqual([
      ['one', '1'],
      ['two', undefined],
      ['::1', '3'],
    ])
    expect(servers('postgresql://u@/db?host=one,/run/pg&port=5')).toEqual([
      ['one', '5'],
      ['/run/pg', '5'],
    ])
    expect(servers('postgres://%2Frun%2Fpg/db')).toEqual([['/run/pg', undefined]])
    expect(parseDatabaseUrl('postgres://a,b/db?load_balance_hosts=random&connect_timeout=1')).toMatchObject({
      isRandom: true,
      attemptMs: 2_000,
    })
  })

  it.each([
    ['postgres://a/db?target_session_attrs=any', 'has a value of target_session_attrs other than'],
    ['postgres://a/db?sslmode=allow', 'has a value of sslmode other than (disable|prefer|require|'],
    ['postgres://a/db?sslmode=verify_full', 'has a value of sslmode other than'],
    ['postgres://a/db?sslmode=', 'has a value of sslmode other than'],
    ['postgres://u:half?other-half@a/db', 'with special characters percent-encoded'],
    ['postgres://a/db?hostaddr=1', 'has the key "hostaddr": the keys are'],
    ['postgres://a,b/db?port=1,2,3', 'must list as many ports as hosts'],
    ['postgres://a:99999/db', 'has a port that is not a number'],
    ['postgres://a b/db', 'has a host that is not a name'],
    ['mysql://a/db', 'must be a postgres://'],
  ])('%s is refused', (text, why) => {
    expect(servers(text)).toContain(why)
  })
})

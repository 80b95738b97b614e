import type { Socket } from 'node:net'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase } from '../../../test/fresh-database.ts'
import { capturedLog } from '../../../test/helpers/captured-log.ts'
import { call, rpc, send } from '../../../test/helpers/http.ts'
import { postgresProxy } from '../../../test/helpers/postgres-proxy.ts'
import { toUrl } from '../../testing/cluster.ts'
import { testService } from '../../testing/index.ts'

/** A service with a role of its own, behind a proxy that can refuse new connections. */
async function asOwnRole() {
  const { connection, open, drop } = await emptyDatabase()
  onTestFinished(drop)
  const [role, database] = [`own_${process.pid}`, pg.escapeIdentifier(connection.database as string)]
  const operator = await open()
  await operator.query(`create role ${role} login; alter database ${database} owner to ${role}`)
  onTestFinished(async () => {
    await operator.query(
      `alter database ${database} owner to current_user; reassign owned by ${role} to current_user`,
    )
    await operator.query(`drop owned by ${role}; drop role ${role}`)
  })
  let isShut = false
  const near = new Set<Socket>()
  const proxy = await postgresProxy({ ...connection, user: role }, (one, far) => {
    if (isShut) one.destroy()
    near.add(one)
    one.pipe(far).pipe(one)
  })
  onTestFinished(proxy.close)
  const captured = capturedLog()
  const service = await testService({
    database_url: toUrl(proxy.connection),
    database_pool_max: 20,
    database_wait_ms: 2_000,
    log: captured.log,
  })
  onTestFinished(() => service.close())
  const { cookie } = await service.account()
  /** The answers to calls at once, which need more connections than are open. */
  const statusesOf = async (count: number): Promise<Set<number>> => {
    const calls = Array.from({ length: count }, (_, n) => (n % 2 ? 'cell_list' : 'cell_create'))
    const answers = calls.map((method) =>
      rpc(service.url, call(method, method === 'cell_create' ? { data: {} } : {}), { cookie }),
    )
    return new Set((await Promise.all(answers)).map(({ status }) => status))
  }
  return {
    statusesOf,
    ready: async () => (await send(service.url, { path: '/ready' })).status,
    alter: (words: string) => operator.query(`alter role ${role} ${words}`),
    shut: async (is = true) => {
      isShut = is
    },
    cut: () => {
      for (const one of near) one.destroy()
    },
    lines: captured.lines,
  }
}

type Own = Awaited<ReturnType<typeof asOwnRole>>

test.each<[string, (own: Own) => Promise<unknown>]>([
  ['the role may not log in, as after its password was changed', ({ alter }) => alter('nologin')],
  ['the role has all connections that it may have', ({ alter }) => alter('connection limit 3')],
  ['the network lets no new ones through', ({ shut }) => shut()],
])('open connections are used on while %s', async (_why, refuse) => {
  const own = await asOwnRole()
  expect(await own.statusesOf(2)).toEqual(new Set([200]))
  await refuse(own)
  for (let n = 0; n < 3; n++) expect(await own.statusesOf(30)).toEqual(new Set([200]))
  await expect.poll(own.ready).toBe(200)
  expect(own.lines()).toContainEqual(expect.objectContaining({ event: 'db_lost' }))
})

test('a role that may not log in leaves the node not ready once its connections are gone, until it may', async () => {
  const own = await asOwnRole()
  expect(await own.statusesOf(2)).toEqual(new Set([200]))
  await own.alter('nologin')
  own.cut()
  expect(await own.statusesOf(2)).toEqual(new Set([503]))
  await expect.poll(own.ready, { timeout: 5_000 }).toBe(503)
  await own.alter('login')
  await expect.poll(own.ready, { timeout: 5_000 }).toBe(200)
  expect(await own.statusesOf(30)).toEqual(new Set([200]))
})

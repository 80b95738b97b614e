import pg from 'pg'
import { expect, it } from 'vitest'
import { call, rpc, send } from '../../test/helpers/http.ts'
import { ownLocks } from '../../test/helpers/own-locks.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { inWork, noteRoute } from '../observe/work.ts'
import { sql } from './db.ts'

const test = await serviceForFile()
const { db } = test.service.app
const { rows } = db
const ada = await test.account()
const headers = { cookie: ada.cookie }
const get = (id: string) => rpc(test.url, call('cell_get', { id }), headers)
const sessionOf = async ({ point }: Pick<typeof db, 'point'>) =>
  (await point<{ pid: number }>(sql`select pg_backend_pid() as pid`))[0]?.pid

it('reads of a locked table hold up no credentials, nor the readiness', async () => {
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.push((await ada.client.cell_create({ data: {} })).cell.id)
  // Until both of the connections that short reads share are open.
  await expect.poll(() => sessionOf(db.readOnly)).not.toBe(await sessionOf(db))

  const owner = new pg.Client(test.databaseUrl)
  await owner.connect()
  await owner.query('begin; lock table cell in access exclusive mode')
  const held = ids.map(get)
  const waiting = sql`select from ${sql.raw(ownLocks)} locks where not granted`
  await expect.poll(() => rows(waiting)).not.toEqual([])
  for (let n = 0; n < 5; n++) expect((await rpc(test.url, call('account_verify'), headers)).status).toBe(200)
  expect((await send(test.url, { path: '/ready' })).status).toBe(200)
  expect(await rows(waiting)).not.toEqual([])

  await owner.query('rollback')
  await owner.end()
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200, 200])
})

it('people sign in while calls on a locked table hold all connections of the pool', async () => {
  const max = test.service.app.config.database_pool_max
  const [bob, { username, password }] = await Promise.all([test.account(), test.account()])
  const owner = new pg.Client(test.databaseUrl)
  await owner.connect()
  await owner.query('begin; lock table cell in access exclusive mode')
  // Too large to share a statement.
  const data = { text: 'x'.repeat(9_000) }
  const held = [ada, bob].flatMap(({ client }) =>
    Array.from({ length: max }, () => client.try.cell_create({ data })),
  )
  await expect.poll(() => db.load()).toMatchObject({ open: max, idle: 0 })
  for (let n = 0; n < 3; n++) await test.client().account.login({ username, password })
  expect(db.load().open).toBe(max + 1)

  await owner.query('rollback')
  await owner.end()
  await Promise.all(held)
})

it('a call that waits is not passed by routes once one of them has the connection above the max', async () => {
  const max = test.service.app.config.database_pool_max
  const begun: string[] = []
  const hold = (name: string, until: Promise<void>) =>
    db.transaction(async (tx) => {
      await tx.run(sql`select`)
      begun.push(name)
      await until
    })
  const asRoute = <T>(run: () => T) =>
    inWork({ site: 'test', fields: {} }, () => {
      noteRoute()
      return run()
    })
  const [one, all] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const held = Array.from({ length: max }, (_, nth) => hold('first', (nth === 0 ? one : all).promise))
  await expect.poll(() => begun).toHaveLength(max)
  held.push(
    asRoute(() => hold('route', all.promise)),
    hold('call', all.promise),
  )
  await expect.poll(() => begun.at(-1)).toBe('route')
  held.push(asRoute(() => hold('second route', all.promise)))
  await expect.poll(() => db.load()).toMatchObject({ open: max + 1, waiting: 2 })
  one.resolve()
  await expect.poll(() => begun).toHaveLength(max + 2)
  const next = begun.at(-1)

  all.resolve()
  await Promise.all(held)
  expect(next).toBe('call')
})

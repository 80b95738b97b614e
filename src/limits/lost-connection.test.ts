import { afterAll, expect, it } from 'vitest'
import { freshIp, send } from '../../test/helpers/account-routes.ts'
import { pending } from '../../test/helpers/limiter-stores.ts'
import { postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { testService } from '../testing/index.ts'
import { createPostgresLimiter } from './postgres-limiter.ts'

const one = await testService()
/** The server carries out the next statements with this text, but their connections end before the answer. */
const lost = { text: '', times: 0 }
const lose = (text: string, times = 1) => Object.assign(lost, { text, times })
const { searchParams, hostname, port, username, pathname } = new URL(one.databaseUrl)
const proxy = await postgresProxy(
  {
    host: searchParams.get('host') ?? hostname,
    port: Number(searchParams.get('port') ?? port),
    user: username,
    database: pathname.slice(1),
  },
  (near, far) => {
    let isLost = false
    near.on('data', (chunk: Buffer) => {
      if (lost.times > 0 && chunk.includes(lost.text)) {
        lost.times -= 1
        isLost = true
      }
      far.write(chunk)
    })
    far.on('data', (chunk: Buffer) => void (isLost ? near.destroy() : near.write(chunk)))
  },
)
const test = await testService({
  database_url: `postgres://${username}@127.0.0.1:${proxy.connection.port}${pathname}`,
  limit_store: 'postgres',
  limit_login_ip: '1/900',
  trusted_proxies: ['127.0.0.1'],
})
afterAll(async () => {
  await test.close()
  await proxy.close()
  await one.close()
})

it('calls and sign-ins go on when the connection that counts them is lost', async () => {
  const ada = await test.account()
  lose('ip cell_read')
  expect(await test.service.call('cell_list', {})).toMatchObject({ cells: [] })
  for (const [password, status] of [
    [ada.password, 200],
    ['wrong', 401],
  ]) {
    lose('rest login_ip')
    const body = { username: ada.username, password }
    expect((await send(test, 'POST /login', { body, ip: freshIp() })).status).toBe(status)
  }
  expect(lost.times).toBe(0)
})

it('a slot that was taken unheard is not in its own way, and one that is freed unheard is free', async () => {
  const { db, log } = test.service.app
  const limiter = createPostgresLimiter({ db, log, name: 'unheard', max: 1, windowMs: 900_000 })
  for (let i = 0; i < 3; i++) {
    lose('unheard')
    const slot = await limiter.hold('a')
    expect([slot.ok, await limiter.hold('a')]).toEqual([true, pending])
    lose('unheard')
    if (slot.ok) await slot.drop()
  }
  lose('unheard', 2)
  await expect(limiter.charge('b')).rejects.toMatchObject({ data: { reason: 'service_unavailable' } })
  expect(lost.times).toBe(0)
})

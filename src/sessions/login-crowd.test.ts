import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshIp, type Reply, send } from '../../test/helpers/account-routes.ts'
import { type TestService, testService } from '../testing/index.ts'

const password = 'a long password'
const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const count = (replies: Reply[], status: number): number =>
  replies.filter((reply) => reply.status === status).length

describe('the holder of a /48 who sends wrong passwords from each of its networks', () => {
  let test: TestService
  beforeAll(async () => {
    test = await testService({
      trusted_proxies: ['127.0.0.1'],
      hash_concurrency: 1,
      argon2: '19456,2,1',
      hash_queue_max: 20,
      limit_login_ip: '5/900',
      limit_login_account: 'off',
    })
  })
  afterAll(() => test.close())
  const login = (username: string, typed: string, ip: string): Promise<Reply> =>
    send(test, 'POST /login', { body: { username, password: typed }, ip })

  it('keeps nobody else from signing in meanwhile, and uses up the budget of their network', async () => {
    const people = await Promise.all(times(8, () => test.account()))
    const attack = times(200, (i) => login(`nobody${i}`, 'wrong', `2001:db8:bad:${i.toString(16)}::1`))
    while (test.service.app.passwords.hasRoom()) await turn()
    const entered = await Promise.all(people.map(({ username }) => login(username, password, freshIp())))
    expect(entered.map(({ status }) => status)).toEqual(Array(8).fill(200))
    const replies = await Promise.all(attack)
    expect(count(replies, 401) + count(replies, 429) + count(replies, 503)).toBe(200)
    // Ten times the budget of one address; after that, nothing from a new network either.
    let tried = count(replies, 401)
    let subnet = 1000
    for (let refused = 0, round = 0; refused < 20 && round < 20; round++) {
      const more = await Promise.all(
        times(20, () => login('nobody', 'wrong', `2001:db8:bad:${(subnet++).toString(16)}::1`)),
      )
      tried += count(more, 401)
      refused = count(more, 429)
    }
    expect(tried).toBe(50)
    const [next] = people
    expect((await login(next?.username as string, password, '2001:db8:600d::1')).status).toBe(200)
  })
})

it('200 right passwords at once from one address all pass', async () => {
  const test = await testService({ trusted_proxies: ['127.0.0.1'], max_sessions: 'off' })
  const [ada, ip] = [await test.account(), freshIp()]
  const body = { username: ada.username, password }
  const replies = await Promise.all(times(200, () => send(test, 'POST /login', { body, ip })))
  expect(count(replies, 200)).toBe(200)
  await test.close()
})

it.each(['memory', 'postgres'] as const)(
  '150 wrong passwords at once from one address: 30 are tried and no more (store %s)',
  async (limit_store) => {
    const test = await testService({ trusted_proxies: ['127.0.0.1'], limit_store })
    const ip = freshIp()
    const replies = await Promise.all(
      times(150, (i) =>
        send(test, 'POST /login', { body: { username: `nobody${i}`, password: 'wrong' }, ip }),
      ),
    )
    expect([count(replies, 401), count(replies, 429)]).toEqual([30, 120])
    await test.close()
  },
)

it.each(['memory', 'postgres'] as const)(
  '150 wrong passwords at once for one name from everywhere: 10 are tried and no more (store %s)',
  async (limit_store) => {
    const test = await testService({ trusted_proxies: ['127.0.0.1'], limit_store })
    const ada = await test.account()
    const replies = await Promise.all(
      times(150, () =>
        send(test, 'POST /login', { body: { username: ada.username, password: 'wrong' }, ip: freshIp() }),
      ),
    )
    expect([count(replies, 401), count(replies, 429)]).toEqual([10, 140])
    await test.close()
  },
)

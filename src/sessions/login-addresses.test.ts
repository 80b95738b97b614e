import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshIp, type Reply, send } from '../../test/helpers/account-routes.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

const password = 'a long password'
const options = { trusted_proxies: ['127.0.0.1'], max_sessions: 'off', limit_login_ip: 'off' } as const
const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const tenThen429 = [...Array(10).fill(401), 429]

describe.each(['memory', 'postgres'] as const)(
  'an address that signed in lately (store %s)',
  (limit_store) => {
    /** Two nodes that share a database. */
    let test: TestService
    let other: TestService
    beforeAll(async () => {
      test = await testService({ ...options, limit_store })
      other = await testService({ ...options, limit_store, database_url: test.databaseUrl })
    })
    afterAll(async () => {
      await other.close()
      await test.close()
    })

    const login = (username: string, typed: string, ip: string, node = test): Promise<Reply> =>
      send(node, 'POST /login', { body: { username, password: typed }, ip })
    const change = (cookie: string, typed: string, ip: string): Promise<Reply> =>
      send(test, 'POST /password', { body: { current_password: typed, new_password: password }, cookie, ip })
    const fail = async (
      username: string,
      count: number,
      ip: () => string,
      node = test,
    ): Promise<number[]> => {
      const seen: number[] = []
      for (let i = 0; i < count; i++) seen.push((await login(username, 'wrong', ip(), node)).status)
      return seen
    }
    const addressesOf = async ({ id }: TestAccount): Promise<string[]> =>
      (
        await test.service.app.db.rows<{ address: string }>(sql`
        select address from account_address where account_id = ${id}::uuid order by last_at, address`)
      ).map(({ address }) => address)

    it('is not locked out by wrong passwords from elsewhere, on any node; others are', async () => {
      const [ada, home] = [await test.account(), freshIp()]
      expect((await login(ada.username, password, home)).status).toBe(200)
      for (const node of [test, other]) await fail(ada.username, 12, freshIp, node)
      for (const node of [test, other]) {
        expect((await login(ada.username, password, home, node)).status).toBe(200)
        expect((await login(ada.username, password, freshIp(), node)).status).toBe(429)
      }
    })

    it('does not free by its success what others have used up, which would reveal that the name exists', async () => {
      const [ada, home] = [await test.account(), freshIp()]
      await login(ada.username, password, home)
      await fail(ada.username, 11, freshIp)
      expect((await login(ada.username, password, home)).status).toBe(200)
      expect(await fail(ada.username, 2, freshIp)).toEqual([429, 429])
    })

    it('has a bucket of its own and no larger one, which a success clears', async () => {
      const [ada, home] = [await test.account(), freshIp()]
      const here = () => home
      await login(ada.username, password, home)
      expect(await fail(ada.username, 9, here)).toEqual(Array(9).fill(401))
      expect((await login(ada.username, password, home)).status).toBe(200)
      expect(await fail(ada.username, 11, here)).toEqual(tenThen429)
      // Another address of the owner is not affected by this one.
      expect((await login(ada.username, password, freshIp())).status).toBe(200)
    })

    it('counts name and e-mail together there, too', async () => {
      const [home, email] = [freshIp(), `mail${limit_store}@l.example`]
      const ada = await test.account({ email })
      await login(ada.username, password, home)
      expect(await fail(ada.username, 4, () => home)).toEqual(Array(4).fill(401))
      expect(await fail(email, 7, () => home)).toEqual([...Array(6).fill(401), 429])
      expect((await login(email, password, freshIp())).status).toBe(200)
    })

    it('is one that signed in, not one that tried to', async () => {
      const [ada, elsewhere] = [await test.account(), freshIp()]
      await fail(ada.username, 10, () => elsewhere)
      expect((await login(ada.username, password, elsewhere)).status).toBe(429)
      expect(await addressesOf(ada)).toEqual([])
    })

    it('is known for one account and not for the next', async () => {
      const [ada, bob, home] = [await test.account(), await test.account(), freshIp()]
      await login(ada.username, password, home)
      await fail(bob.username, 10, freshIp)
      expect((await login(bob.username, password, home)).status).toBe(429)
    })

    it('is any of its /64, for IPv6', async () => {
      const ada = await test.account()
      await login(ada.username, password, '2001:db8:5:6::1')
      await fail(ada.username, 11, freshIp)
      expect((await login(ada.username, password, '2001:db8:5:6:ffff::2')).status).toBe(200)
      expect((await login(ada.username, password, '2001:db8:5:7::1')).status).toBe(429)
      expect(await addressesOf(ada)).toEqual(['2001:db8:5:6::/64'])
    })

    it('is not locked out of /password either', async () => {
      const [ada, home] = [await test.account(), freshIp()]
      const cookie = (await login(ada.username, password, home)).cookie as string
      const seen: number[] = []
      for (let i = 0; i < 11; i++) seen.push((await change(cookie, 'wrong', freshIp())).status)
      expect(seen).toEqual(tenThen429)
      expect((await change(cookie, password, freshIp())).status).toBe(429)
      expect((await change(cookie, password, home)).status).toBe(200)
    })

    it('is forgotten after 90 days, by the check and by the cleanup', async () => {
      const [ada, home] = [await test.account(), freshIp()]
      await login(ada.username, password, home)
      const { db } = test.service.app
      const age = (days: number) =>
        db.run(
          sql`update account_address set last_at = now() - make_interval(days => ${days}::integer) where account_id = ${ada.id}::uuid`,
        )
      await fail(ada.username, 11, freshIp)
      await age(89)
      expect((await login(ada.username, password, home)).status).toBe(200)
      await age(91)
      expect((await login(ada.username, password, home)).status).toBe(429)
      expect(await test.service.operations.cleanUp()).toMatchObject({ expired_addresses: 1 })
      expect(await addressesOf(ada)).toEqual([])
    })

    it('is one of the 16 newest; the others go with the login that is one too many', async () => {
      const [ada, home] = [await test.account(), freshIp()]
      await login(ada.username, password, home)
      await test.service.app.db.run(sql`
      insert into account_address (account_id, address, last_at)
      select ${ada.id}::uuid, 'old ' || n, now() - make_interval(days => 2, mins => n) from generate_series(1, 15) as n`)
      const next = freshIp()
      await login(ada.username, password, next)
      const kept = await addressesOf(ada)
      expect(kept).toHaveLength(16)
      expect(kept).toEqual(expect.arrayContaining([home, next, 'old 14']))
      expect(kept).not.toContain('old 15')
    })

    it('is renewed by a login a day later, once, however many come at once', async () => {
      const [ada, home] = [await test.account(), freshIp()]
      const { db } = test.service.app
      await login(ada.username, password, home)
      await db.run(sql`
      update account_address set last_at = now() - interval '2 days' where account_id = ${ada.id}::uuid`)
      const replies = await Promise.all(
        times(20, (i) => login(ada.username, password, home, i % 2 === 0 ? test : other)),
      )
      expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200))
      const rows = await db.rows(sql`
      select 1 from account_address where account_id = ${ada.id}::uuid and last_at > now() - interval '1 hour'`)
      expect(rows).toHaveLength(1)
    })
  },
)

describe('remembering where somebody signed in', () => {
  let test: TestService
  const statements: string[] = []
  beforeAll(async () => {
    test = await testService({
      ...options,
      onStatement: (text) => {
        statements.push(text)
      },
    })
  })
  afterAll(() => test.close())

  it('takes no statement of its own, and asks the same of a name that nobody has', async () => {
    const [ada, home] = [await test.account(), freshIp()]
    const login = async (username: string, typed: string) => {
      statements.length = 0
      await send(test, 'POST /login', { body: { username, password: typed }, ip: home })
      return [...statements]
    }
    const right = await login(ada.username, password)
    const later = await login(ada.username, password)
    expect(later).toHaveLength(right.length)
    expect(later.filter((text) => text.includes('account_address'))).toHaveLength(1)
    expect(right.filter((text) => text.includes('account_address'))).toHaveLength(2)
    expect(
      right.some((text) => /^\s*(insert|delete|update)/.test(text) && text.includes('account_address')),
    ).toBe(false)
    expect(await login(ada.username, 'wrong')).toEqual(await login('nobody_at_all', 'wrong'))
  })

  it('ends with the account', async () => {
    const [ada, home] = [await test.account(), freshIp()]
    await send(test, 'POST /login', { body: { username: ada.username, password }, ip: home })
    const { db } = test.service.app
    await db.run(sql`delete from account where id = ${ada.id}::uuid`)
    expect(await db.rows(sql`select from account_address where address = ${home}`)).toEqual([])
  })
})

import { describe, expect, it } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

const password = 'a long password'
const noLimits = { limit_login_ip: 'off', limit_login_account: 'off' } as const
const test = await serviceForFile(noLimits)

const login = (username: string, cookie?: string) =>
  send(test, 'POST /login', { body: { username, password }, cookie })
const isAlive = async (cookie: string | undefined): Promise<boolean> =>
  (await send(test, 'GET /verify', { cookie })).status === 200
const liveCount = async ({ id }: TestAccount): Promise<number> => {
  const rows = await test.service.app.db.rows(sql`
    select from auth_session where account_id = ${id}::uuid and expires_at > now()`)
  return rows.length
}
/** Inserts sessions of this age, an SQL interval; the ids are given or random. */
const plant = async ({ id }: TestAccount, ages: string[], ids: string[] = []): Promise<string[]> => {
  const planted = ages.map((_, i) => ids[i] ?? sha256Hex(`${id} ${i}`))
  await test.service.app.db.run(sql`
    insert into auth_session (id, account_id, created_at, expires_at)
    select one, ${id}::uuid, now() - age, now() - age + interval '30 days'
    from unnest(${planted}::text[], ${ages}::interval[]) as _ (one, age)`)
  return planted
}
const ended = (owner: TestAccount, session_id: string, cause: 'cap' | 'replaced') => ({
  event_type: 'session_revoke',
  account_id: owner.id,
  target_account_id: owner.id,
  actor_id: null,
  target_actor_id: null,
  metadata: { session_id, cause },
})

describe('beyond five sessions', () => {
  it('the oldest ends with a login, which says so in the audit log', async () => {
    const ada = await test.account()
    const oldest = ada.cookie
    const others: string[] = []
    for (let i = 0; i < 4; i++) others.push((await login(ada.username)).cookie as string)
    expect(await liveCount(ada)).toBe(5)
    const sixth = await scenario(test, () => login(ada.username), {
      audit: [{ event_type: 'login', account_id: ada.id }, ended(ada, sessionIn(oldest), 'cap')],
    })
    expect(await liveCount(ada)).toBe(5)
    expect(await isAlive(oldest)).toBe(false)
    for (const cookie of [...others, sixth.cookie]) expect(await isAlive(cookie)).toBe(true)
  })

  it('parallel logins leave five, whatever their number', async () => {
    const ada = await test.account()
    const replies = await Promise.all(Array.from({ length: 20 }, () => login(ada.username)))
    expect(replies.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(await liveCount(ada)).toBe(5)
    const alive = await Promise.all(replies.map(({ cookie }) => isAlive(cookie)))
    expect(alive.filter(Boolean)).toHaveLength(5)
  })

  it('parallel logins within the limits are 200 or 429 with a second to wait, and leave at most five', async () => {
    const limited = await testService({ database_url: test.databaseUrl })
    try {
      const ada = await limited.account({ username: 'limited' })
      const replies = await Promise.all(
        Array.from({ length: 20 }, () =>
          send(limited, 'POST /login', { body: { username: ada.username, password } }),
        ),
      )
      const passed = replies.filter(({ status }) => status === 200)
      expect(passed.length).toBeGreaterThanOrEqual(5)
      for (const { status, json } of replies)
        expect([status, json]).toEqual(
          status === 200 ? [200, { ok: true }] : [429, { error: 'rate_limit_exceeded', retry_after: 1 }],
        )
      expect(await liveCount(ada)).toBe(5)
    } finally {
      await limited.close()
    }
  })

  it('expired ones do not count, and stay for the cleanup', async () => {
    const ada = await test.account()
    await plant(ada, ['1 day', '2 days', '3 days', ...Array(5).fill('31 days')])
    await scenario(test, () => login(ada.username), { audit: [{ event_type: 'login' }] })
    expect(await liveCount(ada)).toBe(5)
    expect(await isAlive(ada.cookie)).toBe(true)
    const all = await test.service.app.db.rows(
      sql`select from auth_session where account_id = ${ada.id}::uuid`,
    )
    expect(all).toHaveLength(10)
  })

  it('of equal age the lowest id goes first', async () => {
    const ada = await test.account()
    const ids = ['e', '1', '7', 'c', '4'].map((digit) => digit.repeat(64))
    await plant(ada, Array(5).fill('1 day'), ids)
    await scenario(test, () => login(ada.username), {
      audit: [{ event_type: 'login' }, ended(ada, '1'.repeat(64), 'cap'), ended(ada, '4'.repeat(64), 'cap')],
    })
  })

  it('the new one never goes, even where the clock of the others was ahead', async () => {
    const ada = await test.account()
    await plant(ada, Array(5).fill('-1 hour'))
    const { cookie } = await login(ada.username)
    expect([await isAlive(cookie), await isAlive(ada.cookie), await liveCount(ada)]).toEqual([true, false, 5])
  })

  it('nothing ends where the cap is off', async () => {
    const open = await testService({ ...noLimits, database_url: test.databaseUrl, max_sessions: 'off' })
    try {
      const ada = await open.account({ username: 'uncapped' })
      const body = { username: ada.username, password }
      await scenario(
        open,
        () => Promise.all(Array.from({ length: 8 }, () => send(open, 'POST /login', { body }))),
        {
          audit: Array(8).fill({ event_type: 'login' }),
        },
      )
      expect(await liveCount(ada)).toBe(9)
    } finally {
      await open.close()
    }
  })
})

describe('a login in a browser that has a session', () => {
  it('of the same account replaces it, before the cap is applied', async () => {
    const ada = await test.account()
    for (let i = 0; i < 4; i++) await login(ada.username)
    const reply = await scenario(test, () => login(ada.username, ada.cookie), {
      audit: [{ event_type: 'login', account_id: ada.id }, ended(ada, sessionIn(ada.cookie), 'replaced')],
    })
    expect([await liveCount(ada), await isAlive(ada.cookie), await isAlive(reply.cookie)]).toEqual([
      5,
      false,
      true,
    ])
  })

  it('replaces one and evicts two: a row each', async () => {
    const ada = await test.account()
    const ids = await plant(ada, ['1 day', '2 days', '3 days', '4 days', '5 days', '6 days'])
    const [older, oldest] = ids.slice(-2) as [string, string]
    const cap = [older, oldest].sort().map((id) => ended(ada, id, 'cap'))
    await scenario(test, () => login(ada.username, ada.cookie), {
      audit: [{ event_type: 'login' }, ended(ada, sessionIn(ada.cookie), 'replaced'), ...cap],
    })
    expect(await liveCount(ada)).toBe(5)
  })

  it('of another account ends that one alone, in a row that names its owner', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const other = await login(ada.username)
    const reply = await scenario(test, () => login(bob.username, ada.cookie), {
      audit: [{ event_type: 'login', account_id: bob.id }, ended(ada, sessionIn(ada.cookie), 'replaced')],
    })
    expect(await isAlive(ada.cookie)).toBe(false)
    for (const cookie of [other.cookie, bob.cookie, reply.cookie]) expect(await isAlive(cookie)).toBe(true)
  })

  it('that cannot be ended still succeeds, for that end is a transaction of its own', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const { db } = test.service.app
    await db.run(sql`create or replace function no_end() returns trigger language plpgsql
      as $$ begin raise exception 'delete refused'; end $$`)
    await db.run(sql`create trigger no_end before delete on auth_session for each row
      when (old.account_id = ${sql.raw(`'${ada.id}'`)}) execute function no_end()`)
    const reply = await scenario(test, () => login(bob.username, ada.cookie), {
      audit: [
        { event_type: 'login', account_id: bob.id },
        { event_type: 'session_revoke', outcome: 'failure', metadata: { reason: 'rolled_back' } },
      ],
    })
    expect([reply.status, await isAlive(reply.cookie)]).toEqual([200, true])
  })

  it.each([
    [
      'is dead',
      async ({ client, cookie }: TestAccount) => {
        await client.account.logout()
        return cookie
      },
    ],
    ['has a broken signature', async ({ cookie }: TestAccount) => `${cookie.slice(0, -1)}!`],
  ])('that %s ends nothing', async (_what, presented) => {
    const ada = await test.account()
    const cookie = await presented(ada)
    const before = await liveCount(ada)
    const reply = await scenario(test, () => login(ada.username, cookie), {
      audit: [{ event_type: 'login' }],
    })
    expect([await liveCount(ada), await isAlive(reply.cookie)]).toEqual([before + 1, true])
  })

  it('that fails leaves it alone, and its cookie', async () => {
    const ada = await test.account()
    const body = { username: ada.username, password: 'wrong' }
    const reply = await send(test, 'POST /login', { body, cookie: ada.cookie })
    expect([reply.status, reply.cookie, await isAlive(ada.cookie)]).toEqual([401, undefined, true])
  })

  it('never deadlocks with one that swaps the same two accounts', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    let [first, second]: (string | undefined)[] = [ada.cookie, bob.cookie]
    for (let round = 0; round < 25; round++) {
      const [one, two] = await Promise.all([
        login(round % 2 === 0 ? bob.username : ada.username, first),
        login(round % 2 === 0 ? ada.username : bob.username, second),
      ])
      expect([one.status, two.status, await isAlive(first), await isAlive(second)]).toEqual([
        200,
        200,
        false,
        false,
      ])
      ;[first, second] = [one.cookie, two.cookie]
    }
    const deadlocks = await test.service.app.db.first(sql`
      select deadlocks from pg_stat_database where datname = current_database()`)
    expect(deadlocks).toEqual({ deadlocks: 0 })
  })
})

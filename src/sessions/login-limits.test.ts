import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { freshIp, type Reply, send } from '../../test/helpers/account-routes.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestOptions, type TestService, testService } from '../testing/index.ts'

const password = 'a long password'
const proxied = { trusted_proxies: ['127.0.0.1'], max_sessions: 'off', limit_login_ip: '5/900' } as const
const services = new Map<string, Promise<TestService>>()
afterAll(async () => {
  for (const test of services.values()) await (await test).close()
})

/** One service per set of options, for tests that charge addresses and accounts of their own. */
const service = (options: TestOptions = {}): Promise<TestService> => {
  const key = JSON.stringify(options)
  const made = services.get(key) ?? testService({ ...proxied, ...options })
  services.set(key, made)
  return made
}
const login = (test: TestService, username: string, typed: string, ip: string): Promise<Reply> =>
  send(test, 'POST /login', { body: { username, password: typed }, ip })
const change = (test: TestService, cookie: string, typed: string, ip: string): Promise<Reply> =>
  send(test, 'POST /password', { body: { current_password: typed, new_password: password }, cookie, ip })
const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const statuses = (replies: Reply[]): number[] => replies.map(({ status }) => status).sort()
const inTurn = async (attempts: (() => Promise<Reply>)[]): Promise<number[]> => {
  const seen: number[] = []
  for (const attempt of attempts) seen.push((await attempt()).status)
  return seen
}
const auditRows = async (test: TestService): Promise<number> =>
  (await test.service.app.db.rows(sql`select from audit_entries()`)).length

describe('the limiter of an address', () => {
  it('refuses after 5 failures, the right password too, equally in body and header and without a row', async () => {
    const test = await service()
    const [ada, ip] = [await test.account(), freshIp()]
    expect(await inTurn(times(5, () => () => login(test, ada.username, 'wrong', ip)))).toEqual(
      Array(5).fill(401),
    )
    const before = await auditRows(test)
    for (const [name, typed] of [
      [ada.username, 'wrong'],
      [ada.username, password],
      ['nobody', password],
    ] as const) {
      const { status, json, headers, cookie } = await login(test, name, typed, ip)
      const { retry_after } = json as { retry_after: number }
      expect([status, cookie]).toEqual([429, undefined])
      expect(json).toEqual({ error: 'rate_limit_exceeded', retry_after })
      expect(headers['retry-after']).toBe(String(retry_after))
      expect(Number.isInteger(retry_after) && retry_after > 800 && retry_after <= 900).toBe(true)
    }
    expect(await auditRows(test)).toBe(before)
    expect((await login(test, ada.username, password, freshIp())).status).toBe(200)
  })

  it('counts failures alone: a success between them frees nothing, and successes alone use nothing up', async () => {
    const test = await service()
    const [ada, ip] = [await test.account(), freshIp()]
    const typed = times(10, (i) => (i % 2 === 0 ? 'wrong' : password))
    expect(await inTurn(typed.map((one) => () => login(test, ada.username, one, ip)))).toEqual([
      401, 200, 401, 200, 401, 200, 401, 200, 401, 429,
    ])
    const other = freshIp()
    const good = times(20, () => () => login(test, ada.username, password, other))
    expect(await inTurn(good)).toEqual(Array(20).fill(200))
  })

  it('lets exactly 5 of 20 parallel failures through', async () => {
    const test = await service()
    const ip = freshIp()
    const replies = await Promise.all(times(20, (i) => login(test, `nobody${i}`, 'wrong', ip)))
    expect(statuses(replies)).toEqual([...Array(5).fill(401), ...Array(15).fill(429)])
  })

  it('is shared by /login and /password, which leaves session and cookie alive', async () => {
    const test = await service()
    const [ada, ip] = [await test.account(), freshIp()]
    const wrong = [
      ...times(3, (i) => () => login(test, `nobody${i}`, 'wrong', ip)),
      ...times(2, () => () => change(test, ada.cookie, 'wrong', ip)),
    ]
    expect(await inTurn(wrong)).toEqual(Array(5).fill(401))
    const replies = [await login(test, 'nobody', 'wrong', ip), await change(test, ada.cookie, password, ip)]
    for (const { status, json, headers, cookie } of replies) {
      expect([status, json?.error, cookie]).toEqual([429, 'rate_limit_exceeded', undefined])
      expect(headers['retry-after']).toBe(String(json?.retry_after))
    }
    expect((await ada.client.account_verify()).id).toBe(ada.id)
  })

  it('is not charged by a body that breaks the schema', async () => {
    const test = await service()
    const ip = freshIp()
    const bad = times(6, () => () => login(test, '', 'wrong', ip))
    const wrong = times(6, (i) => () => login(test, `nobody${i}`, 'wrong', ip))
    expect(await inTurn([...bad, ...wrong])).toEqual([...Array(6).fill(400), ...Array(5).fill(401), 429])
  })

  it('believes no X-Forwarded-For of a peer that is no trusted proxy', async () => {
    const test = await service({ trusted_proxies: [] })
    const wrong = times(6, (i) => () => login(test, `nobody${i}`, 'wrong', freshIp()))
    expect(await inTurn(wrong)).toEqual([...Array(5).fill(401), 429])
  })
})

describe('the limiter of a name', () => {
  it('counts a username with its case and space variants together, from any address', async () => {
    const test = await service()
    const ada = await test.account({ username: 'ada_l' })
    const names = ['ada_l', ' ADA_L ', 'Ada_L']
    const wrong = times(10, (i) => () => login(test, names[i % 3] as string, 'wrong', freshIp()))
    expect(await inTurn(wrong)).toEqual(Array(10).fill(401))
    for (const name of names) expect((await login(test, name, password, freshIp())).status).toBe(429)
    expect((await ada.client.account_verify()).id).toBe(ada.id)
  })

  it('counts the username and the e-mail of an account together, and other names by themselves', async () => {
    const test = await service()
    const ada = await test.account({ username: 'linked', email: 'linked@l.example' })
    const names = ['linked', 'LINKED@l.example']
    const wrong = times(10, (i) => () => login(test, names[i % 2] as string, 'wrong', freshIp()))
    expect(await inTurn(wrong)).toEqual(Array(10).fill(401))
    const nobody = times(10, () => () => login(test, 'nobody@l.example', 'wrong', freshIp()))
    expect(await inTurn(nobody)).toEqual(Array(10).fill(401))
    const refusals = await Promise.all(
      [...names, 'nobody@l.example'].map((name) => login(test, name, password, freshIp())),
    )
    const bare = refusals.map((reply) => reply.bare.replaceAll(String(reply.json?.retry_after), 'N'))
    expect([statuses(refusals), new Set(bare).size]).toEqual([[429, 429, 429], 1])
    expect((await ada.client.account_verify()).id).toBe(ada.id)
    expect((await login(test, 'no_such_name', 'wrong', freshIp())).status).toBe(401)
  })

  it('starts over after a success', async () => {
    const test = await service()
    const ada = await test.account()
    const wrong = (count: number) => times(count, () => () => login(test, ada.username, 'wrong', freshIp()))
    const right = () => login(test, ada.username, password, freshIp())
    expect(await inTurn([...wrong(9), right, ...wrong(10), right])).toEqual([
      ...Array(9).fill(401),
      200,
      ...Array(10).fill(401),
      429,
    ])
  })

  it('is shared by /password, and a password changed clears it', async () => {
    const test = await service()
    const [ada, bob] = [await test.account(), await test.account()]
    const wrong = ({ cookie }: TestAccount, count: number) =>
      inTurn(times(count, () => () => change(test, cookie, 'wrong', freshIp())))
    expect(await wrong(ada, 11)).toEqual([...Array(10).fill(401), 429])
    expect((await login(test, ada.username, password, freshIp())).status).toBe(429)
    expect(await wrong(bob, 9)).toEqual(Array(9).fill(401))
    expect((await change(test, bob.cookie, password, freshIp())).status).toBe(200)
    const again = (await login(test, bob.username, password, freshIp())).cookie as string
    expect(await wrong({ ...bob, cookie: again }, 2)).toEqual([401, 401])
  })

  it('answers alike for a name that nobody has', async () => {
    const test = await service()
    const names = ['No_body', ' no_body', 'NO_BODY']
    const wrong = times(11, (i) => () => login(test, names[i % 3] as string, 'wrong', freshIp()))
    expect(await inTurn(wrong)).toEqual([...Array(10).fill(401), 429])
  })

  it('can be switched off', async () => {
    const test = await service({ limit_login_account: 'off' })
    const ada = await test.account()
    const wrong = times(12, () => () => login(test, ada.username, 'wrong', freshIp()))
    expect(await inTurn(wrong)).toEqual(Array(12).fill(401))
  })
})

describe('twelve people behind one address', () => {
  it.each(['memory', 'postgres'])('all sign in at the same moment (store %s)', async (limit_store) => {
    const test = await testService({ trusted_proxies: ['127.0.0.1'], limit_store } as TestOptions)
    const [people, ip] = [await Promise.all(times(12, () => test.account())), freshIp()]
    const replies = await Promise.all(people.map(({ username }) => login(test, username, password, ip)))
    expect(statuses(replies)).toEqual(Array(12).fill(200))
    // Also with a budget far below their number.
    const small = await testService({
      trusted_proxies: ['127.0.0.1'],
      limit_store,
      limit_login_ip: '2/900',
      database_url: test.databaseUrl,
    } as TestOptions)
    const more = await Promise.all(people.map(({ username }) => login(small, username, password, ip)))
    expect(statuses(more)).toEqual(Array(12).fill(200))
    await small.close()
    await test.close()
  })

  it('have 30 wrong passwords in a quarter of an hour', async () => {
    const test = await testService({ trusted_proxies: ['127.0.0.1'] })
    const ip = freshIp()
    const replies = await Promise.all(times(60, (i) => login(test, `nobody${i}`, 'wrong', ip)))
    expect(statuses(replies)).toEqual([...Array(30).fill(401), ...Array(30).fill(429)])
    await test.close()
  })

  it('one account may sign in from many places at once', async () => {
    const test = await service({ limit_login_account: '2/900' })
    const ada = await test.account()
    const replies = await Promise.all(times(20, () => login(test, ada.username, password, freshIp())))
    expect(statuses(replies)).toEqual(Array(20).fill(200))
  })
})

/** Two loops verify without end: when one is done, the other runs, and the next is queued before any caller is told. */
function occupy({ service: { app } }: TestService): { end(): Promise<unknown> } {
  let isOver = false
  const verifying = async (): Promise<void> => {
    while (!isOver) await app.passwords.verify(undefined, 'wrong')
  }
  const both = Promise.all([verifying(), verifying()])
  return {
    end: () => {
      isOver = true
      return both
    },
  }
}

it('a full hash queue answers 503 busy, the same for everybody, and charges and records nothing', async () => {
  const test = await service({ hash_concurrency: 1, hash_queue_max: 1 })
  const [ada, ip] = [await test.account(), freshIp()]
  const before = await auditRows(test)
  const occupied = occupy(test)
  const replies: Reply[] = []
  for (const name of [ada.username, 'nobody', 'nobody@l.example', ada.username, 'nobody', ada.username])
    replies.push(await login(test, name, password, ip))
  replies.push(await change(test, ada.cookie, password, ip))
  expect(await auditRows(test)).toBe(before)
  await occupied.end()
  const [first] = replies
  expect(first).toMatchObject({
    status: 503,
    json: { error: 'busy', retry_after: 1 },
    headers: { 'retry-after': '1' },
  })
  for (const { bare } of replies) expect(bare).toBe(first?.bare)
  const wrong = times(6, (i) => () => login(test, `nobody${i}`, 'wrong', ip))
  expect(await inTurn(wrong)).toEqual([...Array(5).fill(401), 429])
})

describe('the failure floor', () => {
  it('keeps every refusal back for at least its time', async () => {
    const floor = 300
    const test = await service({ login_fail_floor_ms: floor, login_fail_jitter_ms: 20 })
    const [ada, gone, corrupt] = [await test.account(), await test.account(), await test.account()]
    await test.service.app.db.run(sql`update account set password_hash = '' where id = ${corrupt.id}::uuid`)
    await test.service.app.db.run(sql`update account set deleted_at = now() where id = ${gone.id}::uuid`)
    const names = [ada.username, gone.username, corrupt.username, 'nobody', 'nobody@l.example']
    const attempts = names.map(async (name) => {
      const started = performance.now()
      const { status } = await login(test, name, 'wrong', freshIp())
      return [name, status, performance.now() - started >= floor]
    })
    expect(await Promise.all(attempts)).toEqual(names.map((name) => [name, 401, true]))
  })

  /** Failures whose floor outlasts the test; they end with the service. */
  const failing = async (count: number, ip: () => string) => {
    const test = await service({ login_fail_floor_ms: 10_000, database_pool_max: 2 })
    const before = await auditRows(test)
    const seen = { ended: 0 }
    for (const name of times(count, (i) => `nobody${i}`))
      login(test, name, 'wrong', ip()).then(
        () => seen.ended++,
        () => {},
      )
    while ((await auditRows(test)) < before + count) await turn()
    return { test, seen }
  }

  it('holds no connection of the pool: with two of them, 40 failures under way hinder nobody', async () => {
    const { test, seen } = await failing(40, freshIp)
    const ada = await test.account()
    const replies = await Promise.all([
      send(test, 'GET /verify', { cookie: ada.cookie }),
      send(test, 'GET /status', { cookie: ada.cookie }),
      login(test, ada.username, password, freshIp()),
    ])
    expect([statuses(replies), seen.ended]).toEqual([[200, 200, 200], 0])
  })

  it('does not hold back the charge: others learn at once how long to wait', async () => {
    const ip = freshIp()
    const { test, seen } = await failing(5, () => ip)
    const { status, json } = await login(test, 'nobody', 'wrong', ip)
    expect([status, seen.ended]).toEqual([429, 0])
    expect(json?.retry_after).toBeGreaterThan(800)
  })
})

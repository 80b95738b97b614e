import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { send, sessionIn } from '../../test/helpers/account-routes.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { batched } from '../db/batched.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, testService } from '../testing/index.ts'

const statements: string[] = []
const test = await serviceForFile({ onStatement: (text) => void statements.push(text) })

const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
type Answer = { result?: { id: string }; error?: { code: number; data: { reason: string } } }
const rpc = async (cookie: string, { url } = test) => {
  const reply = await fetch(`${url}/api/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie },
    body: '{"jsonrpc":"2.0","id":1,"method":"account_verify"}',
  })
  return { status: reply.status, set: reply.headers.getSetCookie(), json: (await reply.json()) as Answer }
}
const read = (cookie: string, withActors = false) =>
  test.service.app.callers.read({
    carriers: { cookie: test.service.app.sessionCookie.read(cookie) },
    withActors,
    ip: '127.0.0.1',
  })
const value = ({ cookie }: TestAccount): string => cookie.slice('svc_session='.length)

describe('a session cookie', () => {
  it.each<[string, (good: string) => string]>([
    ['empty', () => ''],
    ['garbage', () => 'garbage'],
    ['with another token', (good) => `${good[0] === 'A' ? 'B' : 'A'}${good.slice(1)}`],
    [
      'with a later expiry',
      (good) => good.replace(/\.\d+\./, (part) => `.${Number(part.slice(1, -1)) + 1}.`),
    ],
    ['with a part more', (good) => `${good}.x`],
    ['without its signature', (good) => good.slice(0, good.lastIndexOf('.'))],
  ])('%s is no credential, and the reply clears it', async (_what, spoil) => {
    const ada = await test.account()
    const cookie = `svc_session=${spoil(value(ada))}`
    const reply = await rpc(cookie)
    expect([reply.status, reply.json.error?.code]).toEqual([401, -32001])
    expect(reply.set).toEqual([test.service.app.sessionCookie.clear()])
    for (const route of ['GET /verify', 'GET /status']) {
      const { status, cookie: set } = await send(test, route, { cookie })
      expect([route, status, set]).toEqual([route, 401, 'svc_session='])
    }
    expect((await rpc(ada.cookie)).json.result?.id).toBe(ada.id)
  })

  it('outlives a clock of this machine that jumps', async () => {
    const { now } = Date
    const clock = vi.spyOn(Date, 'now')
    onTestFinished(() => clock.mockRestore())
    await using own = await testService()
    const { cookie, id } = await own.account()
    clock.mockImplementation(() => now() + 40 * 86_400_000)
    const { status, set, json } = await rpc(cookie, own)
    expect([status, set, json.result?.id]).toEqual([200, [], id])
  })

  it('whose session or account is gone is not a valid credential, but is not cleared', async () => {
    const [revoked, expired, deleted] = [await test.account(), await test.account(), await test.account()]
    await run`delete from auth_session where account_id = ${revoked.id}::uuid`
    await run`update auth_session set expires_at = date_trunc('milliseconds', now()) where account_id = ${expired.id}::uuid`
    await run`update account set deleted_at = now() where id = ${deleted.id}::uuid`
    for (const { cookie } of [revoked, expired, deleted]) {
      const reply = await rpc(cookie)
      expect([reply.status, reply.set]).toEqual([401, []])
    }
  })

  it('sent twice: the first one counts', async () => {
    const ada = await test.account()
    expect((await rpc(`svc_session=garbage; ${ada.cookie}`)).status).toBe(401)
    expect((await rpc(`${ada.cookie}; svc_session=garbage`)).json.result?.id).toBe(ada.id)
  })

  it('that could not be checked is neither 401 nor cleared, and the next request is served', async () => {
    const [ada, other] = [await test.account(), await rival(test.databaseUrl)]
    await using impatient = await testService({ database_url: test.databaseUrl, statement_timeout_ms: 1000 })
    try {
      await other.begin('lock table auth_session in access exclusive mode')
      const [failed, open] = await Promise.all([
        rpc(ada.cookie, impatient),
        impatient.service.app.db.first<{ one: number }>(sql`select 1 as one`),
      ])
      expect([failed.status, failed.json.error?.data.reason, failed.set]).toEqual([504, 'timeout', []])
      expect(open).toEqual({ one: 1 })
      await other.commit()
      expect((await rpc(ada.cookie, impatient)).json.result?.id).toBe(ada.id)
    } finally {
      await other.close()
    }
  })
})

describe('concurrent requests', () => {
  it('each get their own account, even within the same turn', async () => {
    const accounts = await Promise.all(Array.from({ length: 12 }, () => test.account()))
    const dead = await test.account()
    await run`delete from auth_session where account_id = ${dead.id}::uuid`
    const cookies = [...accounts.map(({ cookie }) => cookie), dead.cookie, 'svc_session=garbage', '']
    const asked = fc.array(fc.tuple(fc.nat(cookies.length - 1), fc.boolean()), { maxLength: 60 })
    await fc.assert(
      fc.asyncProperty(asked, async (requests) => {
        const callers = await Promise.all(
          requests.map(([i, withActors]) => read(cookies[i] as string, withActors)),
        )
        for (const [nth, [i, withActors]] of requests.entries()) {
          const [caller, account] = [callers[nth], accounts[i]]
          expect(caller?.account.id).toBe(account?.id)
          expect(caller?.credential.id).toBe(account && sessionIn(account.cookie))
          const actors = caller?.candidates?.map(({ id }) => id)
          expect(actors).toEqual(account && withActors ? [account.actor_id] : undefined)
        }
      }),
      { numRuns: 40 },
    )
    const replies = await Promise.all(cookies.concat(cookies).map((cookie) => rpc(cookie)))
    for (const [i, { json }] of replies.entries())
      expect(json.result?.id).toBe(accounts[i % cookies.length]?.id)
  })

  it('of one turn share one statement, and nothing is kept for the next', async () => {
    const accounts = await Promise.all(Array.from({ length: 10 }, () => test.account()))
    statements.length = 0
    await Promise.all([...accounts, ...accounts].map(({ cookie }) => read(cookie)))
    expect(statements).toHaveLength(1)
    const [ada] = accounts as [TestAccount]
    await run`delete from auth_session where account_id = ${ada.id}::uuid`
    const again = await Promise.all(accounts.map(({ cookie }) => read(cookie)))
    expect(again.map((caller) => caller?.account.id)).toEqual([
      undefined,
      ...accounts.slice(1).map(({ id }) => id),
    ])
  })

  it('get separate objects: changes that one makes to its caller are invisible to others', async () => {
    const ada = await test.account()
    const [one, two] = await Promise.all([read(ada.cookie), read(ada.cookie)])
    Object.assign(one?.account as object, { username: 'changed' })
    expect(two?.account.username).toBe(ada.username)
  })
})

describe('the actors of a caller', () => {
  it('are read by one plan, which is not made anew for each request', async () => {
    const ada = await test.account()
    for (let request = 0; request < 40; request++) expect(await read(ada.cookie, true)).not.toBeNull()
    const plans = await test.service.app.db.point<{ custom: number; generic: number }>(sql`
      select sum(custom_plans)::int as custom, sum(generic_plans)::int as generic from pg_prepared_statements`)
    expect(plans).toEqual([{ custom: 0, generic: expect.any(Number) }])
    expect(plans[0]?.generic).toBeGreaterThan(10)
  })

  it('are the live ones, oldest first and then by id, each with its active grants', async () => {
    const ada = await test.account({ roles: ['admin'] })
    const made = [
      await test.actor(ada.id, 'b'),
      await test.actor(ada.id, 'a'),
      await test.actor(ada.id, 'gone'),
    ]
    await run`update actor set created_at = '2020-01-01' where id = any(${made}::uuid[])`
    await run`update actor set deleted_at = now() where id = ${made[2]}::uuid`
    await run`insert into role_grant (actor_id, role, created_at, expires_at)
      values (${made[0]}::uuid, 'admin', '2020-01-01', '2020-01-02')`
    const caller = await read(ada.cookie, true)
    const seen = caller?.candidates?.map(({ id, role_grants }) => [id, role_grants.map(({ role }) => role)])
    expect(seen).toEqual([
      ...made
        .slice(0, 2)
        .sort()
        .map((id) => [id, []]),
      [ada.actor_id, ['admin']],
    ])
    expect(Object.keys(caller?.account ?? {}).sort()).toEqual([
      'created_at',
      'email',
      'email_verified',
      'id',
      'username',
    ])
  })

  it('with many grants are read in the turn of their account; those who share the statement do not wait', async () => {
    const [ada, bob] = await Promise.all([test.account(), test.account()])
    const grant = (count: number) => run`
      insert into role_grant (actor_id, role, scope_kind, scope_id, created_at)
      select ${ada.actor_id}::uuid, 'member', 'team', gen_random_uuid(), now() - n * interval '1 day'
      from generate_series(1, ${count}::int) n`
    const held = Promise.withResolvers<void>()
    const { gate } = test.service.app
    const holding = Array.from({ length: 8 }, () => gate.run(ada.id, () => held.promise))

    await grant(64)
    expect((await read(ada.cookie, true))?.candidates?.[0]?.role_grants).toHaveLength(64)
    await grant(1)
    const answered: string[] = []
    const reads = [ada, bob].map(async ({ cookie, username }) => {
      const caller = await read(cookie, true)
      answered.push(username)
      return caller?.candidates?.[0]?.role_grants.map(({ created_at }) => created_at)
    })
    await reads[1]
    expect(answered).toEqual([bob.username])
    held.resolve()
    const [many] = await Promise.all(reads)
    expect(many).toHaveLength(65)
    expect(many).toEqual(many?.toSorted())
    await Promise.all(holding)
  })
})

describe('batched reads', () => {
  const recording = (fails: (keys: string[]) => boolean = () => false) => {
    const loads: string[][] = []
    const ask = batched<string>(async (keys) => {
      loads.push(keys)
      await new Promise(setImmediate)
      if (fails(keys)) throw new Error(`no ${keys[0]}`)
      return new Map(keys.filter((key) => !key.startsWith('x')).map((key) => [key, `value of ${key}`]))
    })
    return { loads, ask }
  }

  it('are sent once per turn, each key once; a key that is not found yields undefined', async () => {
    const { loads, ask } = recording()
    const answers = await Promise.all(['a', 'b', 'a', 'x'].map(ask))
    expect(answers).toEqual(['value of a', 'value of b', 'value of a', undefined])
    expect(loads).toEqual([['a', 'b', 'x']])
  })

  it('are sent in batches of 128 at most', async () => {
    const { loads, ask } = recording()
    const keys = Array.from({ length: 300 }, (_, i) => `k${i}`)
    expect(await Promise.all(keys.map(ask))).toEqual(keys.map((key) => `value of ${key}`))
    expect(loads.map(({ length }) => length)).toEqual([128, 128, 44])
  })

  it('that come while a batch runs start a new one, even for the same keys', async () => {
    const { loads, ask } = recording()
    const first = ask('a')
    while (loads.length === 0) await new Promise(setImmediate)
    expect(await Promise.all([first, ask('a'), ask('b')])).toEqual(['value of a', 'value of a', 'value of b'])
    expect(loads).toEqual([['a'], ['a', 'b']])
  })

  it('of a failing batch are rejected, those of other batches are not', async () => {
    const { ask } = recording((keys) => keys.includes('bad'))
    const turns = []
    for (const keys of [
      ['a', 'b'],
      ['c', 'bad', 'c'],
      ['a', 'bad2'],
    ]) {
      turns.push(Promise.allSettled(keys.map(ask)))
      await new Promise(setImmediate)
    }
    const outcomes = (await Promise.all(turns)).map((turn) => turn.map(({ status }) => status))
    const [fine, failed] = ['fulfilled', 'rejected']
    expect(outcomes).toEqual([
      [fine, fine],
      [failed, failed, failed],
      [fine, fine],
    ])
  })
})

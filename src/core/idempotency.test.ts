import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { bearer, tokenOf } from '../../test/helpers/callers.ts'
import { call, dataOf, type Reply, reasonOf, rpc, send } from '../../test/helpers/http.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket, outcomeOf } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'
import { mutation } from './declare.ts'
import { committed } from './mutate.ts'

const auth = { account: 'required', actor: 'required' } as const
let runs = 0
/** What the handler of the next calls does. */
let act: (() => unknown) | undefined
const answer = mutation({
  doc: 'Answers what the test says.',
  auth,
  event: 'cell_update',
  input: z.strictObject({ text: z.string().default('by default'), big: z.bigint().optional() }),
  output: z.unknown(),
  errors: ['cell_path_taken'],
  async handler({ text }, { audit, afterCommit }) {
    runs++
    audit('cell_update', { cell_id: randomUUID() })
    afterCommit(() => void effects.push(text))
    return (await act?.()) ?? { text }
  },
})
const effects: string[] = []
const open = mutation({
  doc: 'Anyone may call it.',
  auth: { account: 'none', actor: 'none' },
  event: 'cell_update',
  output: z.null(),
  handler: async () => null,
})

const statements: string[] = []
const actions = { answer, open }
const test = await serviceForFile({
  actions,
  limit_cell_create: '100000/60',
  audit_stream: true,
  onStatement: (text) => statements.push(text),
})
const far = await testService({ actions, database_url: test.databaseUrl })
afterAll(() => far.close())
const ada = await test.account()
const db = () => test.service.app.db
/** What the nodes of this process count from now on. */
const counts = () => {
  const counted = { stored: 0, replayed: 0, reused: 0, waited: 0 }
  const { observer } = test.service.app
  vi.spyOn(observer, 'count').mockImplementation((metric, outcome) => {
    if (metric === 'idempotency_total') counted[outcome as keyof typeof counted]++
  })
  return counted
}
afterEach(() => void vi.restoreAllMocks())

const newKey = (): string => randomUUID()
const under = (key: string, who: { cookie: string } = ada) => ({ cookie: who.cookie, 'idempotency-key': key })
const create = (key: string, params: object = { data: {} }, who = ada, url = test.url) =>
  rpc(url, call('cell_create', params), under(key, who))
const isReplayed = ({ headers }: Reply): boolean => headers['idempotency-replayed'] === 'true'
const cellCount = async (): Promise<number> =>
  (await db().one<{ n: number }>(sql`select count(*)::int as n from cell`)).n
const rowsOf = (account_id: string) =>
  db().rows<{ reply: unknown }>(
    sql`select reply from idempotency_key where account_id = ${account_id}::uuid order by created_at`,
  )

describe('a repetition', () => {
  it('is answered as the first call was, on any node, and does nothing else', async () => {
    const key = newKey()
    const first = await scenario(test, () => create(key), { audit: [{ event_type: 'cell_create' }] })
    expect([first?.status, first && isReplayed(first)]).toEqual([200, false])
    for (const { url } of [test, far]) {
      const again = await scenario(test, () => create(key, { data: {}, acting: ada.actor_id }, ada, url))
      expect(again && isReplayed(again)).toBe(true)
      expect(again?.text).toBe(first?.text)
    }
    const other = await rpc(
      test.url,
      call('cell_create', { data: {}, visibility: 'private' }, 'x'),
      under(key),
    )
    expect(other.text).toBe(first?.text.replace('"id":1', '"id":"x"'))
  })

  it('has the very text of the first reply, whatever it holds', async () => {
    act = () => ({ z: 1, a: { '2': '\0 ä', '1': [1e21, -0.5] } })
    const key = newKey()
    const [first, again] = [
      await rpc(test.url, call('answer'), under(key)),
      await rpc(test.url, call('answer'), under(key)),
    ]
    act = undefined
    expect(first.status).toBe(200)
    expect(again.text).toBe(first.text)
  })

  it('of a hundred calls at once is one effect with a hundred equal replies', async () => {
    const [key, counted, cells] = [newKey(), counts(), await cellCount()]
    const replies = await scenario(
      test,
      () =>
        Promise.all(
          Array.from({ length: 100 }, async (_, i) => {
            // A busy machine refuses those that wait for a connection for five seconds.
            for (;;) {
              const reply = await create(key, { data: { a: 1, b: 2 } }, ada, [test, far][i % 2]?.url)
              if (reply.status !== 503) return reply
            }
          }),
        ),
      { audit: [{ event_type: 'cell_create' }] },
    )
    expect(new Set(replies?.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(replies?.[0]?.status).toBe(200)
    expect(replies?.filter(isReplayed)).toHaveLength(99)
    expect(await cellCount()).toBe(cells + 1)
    // Only half of the calls came to this node.
    expect([counted.stored + counted.replayed, counted.reused]).toEqual([50, 0])
  })

  it('waits for the call that is under way: takes its reply, runs if it was undone, or is 504', async () => {
    const other = await rival(test.databaseUrl)
    const hold = (key: string) =>
      other.begin(
        `insert into idempotency_key (account_id, key_hash, request_hash, created_at)
         select account_id, sha256($2), request_hash, now() + interval '1 minute' from idempotency_key
         where account_id = $1 order by created_at desc limit 1`,
        [ada.id, key],
      )
    const params = { text: 'waits' }
    const counted = counts()
    const held = newKey()
    await rpc(test.url, call('answer', params), under(newKey()))
    await hold(held)
    const waiting = rpc(test.url, call('answer', params), under(held))
    // The key is part of what is hashed, and this hash was made with another key.
    expect(reasonOf(await other.release(waiting))).toBe('idempotency_key_reused')
    expect(counted).toEqual({ stored: 1, replayed: 0, reused: 1, waited: 1 })

    const undone = newKey()
    await hold(undone)
    const runner = rpc(test.url, call('answer', params), under(undone))
    await other.blocks(1)
    await other.query('rollback')
    expect((await runner).json).toMatchObject({ result: { text: 'waits' } })

    const late = newKey()
    await hold(late)
    const ran = runs
    await using impatient = await testService({
      actions,
      database_url: test.databaseUrl,
      statement_timeout_ms: 500,
    })
    expect(await rpc(impatient.url, call('answer', params), under(late))).toMatchObject({ status: 504 })
    await other.query('rollback')
    await other.close()
    expect(runs).toBe(ran)
  })

  it('of what was rolled back runs anew; of a refusal that committed is that refusal', async () => {
    act = () => {
      throw test.service.app.fail('cell_path_taken', { n: runs })
    }
    const [key, ran] = [newKey(), runs]
    for (const n of [1, 2]) {
      const refused = await rpc(test.url, call('answer'), under(key))
      expect([dataOf(refused), isReplayed(refused)]).toEqual([
        { reason: 'cell_path_taken', n: ran + n },
        false,
      ])
    }
    act = () => {
      throw committed(test.service.app.fail('cell_path_taken', { n: runs }))
    }
    const first = await rpc(test.url, call('answer'), under(key))
    const again = await rpc(test.url, call('answer'), under(key))
    act = undefined
    expect([first.status, dataOf(first)]).toEqual([409, { reason: 'cell_path_taken', n: ran + 3 }])
    expect([again.status, again.text, isReplayed(again)]).toEqual([409, first.text, true])
    expect(runs).toBe(ran + 3)
  })

  it('is charged to the limiter, and runs no consumer code: neither handler nor effect', async () => {
    const [key, ran] = [newKey(), runs]
    effects.length = 0
    for (let n = 0; n < 3; n++) await rpc(test.url, call('answer', { text: 'once' }), under(key))
    expect([runs, effects]).toEqual([ran + 1, ['once']])
    const limited = await testService({ database_url: test.databaseUrl, limit_cell_create: '2/60' })
    const replies = []
    for (let n = 0; n < 3; n++)
      replies.push(reasonOf(await create(key.slice(1), { data: {} }, ada, limited.url)))
    expect(replies).toEqual(['ok', 'ok', 'rate_limited'])
    await limited.close()
  })
})

describe('a key', () => {
  it('is of its account, and used for another method, actor or input it is 409', async () => {
    const twin = await test.actor(ada.id, 'twin')
    const [key, bob] = [newKey(), await test.account()]
    const own = { data: { n: 1 }, acting: ada.actor_id }
    await create(key, own)
    for (const [method, params] of [
      ['cell_create', { ...own, data: { n: 2 } }],
      ['cell_create', { ...own, acting: twin }],
      ['answer', { acting: ada.actor_id }],
    ] as const) {
      const refused = await scenario(test, () => rpc(test.url, call(method, params), under(key)))
      expect([refused?.status, refused && dataOf(refused)]).toEqual([
        409,
        { reason: 'idempotency_key_reused' },
      ])
    }
    const foreign = await create(key, { data: { n: 1 } }, bob)
    expect([foreign.status, isReplayed(foreign)]).toEqual([200, false])
    await test.service.operations.removeActor({ actor_id: twin }, { via: 'testing' })
  })

  it('is of the same input if null stands for what was left out, and not if null has a meaning', async () => {
    const [key, other] = [newKey(), newKey()]
    const first = await create(key)
    const same = await create(key, { data: {}, kind: null, path: null })
    expect([same.json, isReplayed(same)]).toEqual([first.json, true])
    const { id } = (first.json as { result: { cell: { id: string } } }).result.cell
    const update = (params: object) =>
      rpc(test.url, call('cell_update', { cell_id: id, data: { n: 2 }, ...params }), under(other))
    expect((await update({})).status).toBe(200)
    expect(reasonOf(await update({ path: null }))).toBe('idempotency_key_reused')
  })

  it('is of the same input whatever the order of keys, at any depth, and not of another order of a list', async () => {
    const key = newKey()
    const first = await create(key, { data: { a: [1, 2], b: { c: 1, d: 2 } }, kind: 'note' })
    const same = await create(key, { kind: 'note', data: { b: { d: 2, c: 1 }, a: [1, 2] } })
    expect([same.json, isReplayed(same)]).toEqual([first.json, true])
    const other = await create(key, { kind: 'note', data: { a: [2, 1], b: { c: 1, d: 2 } } })
    expect(reasonOf(other)).toBe('idempotency_key_reused')
  })

  it('is refused where it is ill-formed or would not be heeded, before anything is done', async () => {
    const cells = await cellCount()
    const good = newKey()
    const refusal = async (reply: Promise<Reply>) => {
      const { status, json } = await reply
      const { error, detail } = json as { error: { code: number; data: { detail: string } }; detail?: string }
      return [status, detail ?? error.data.detail]
    }
    for (const key of ['x'.repeat(15), 'x'.repeat(65), `${good} x`, `${good},${good}`, 'ä'.repeat(16), ''])
      expect(await refusal(create(key))).toEqual([400, 'idempotency_key'])
    const headers = { ...under(good), 'idempotency-key': [good, good] as unknown as string }
    expect(await refusal(rpc(test.url, call('cell_create', { data: {} }), headers))).toEqual([
      400,
      'idempotency_key',
    ])
    const elsewhere = [400, 'idempotency_not_supported']
    const batch = [call('cell_create', { data: {} })]
    expect(await refusal(rpc(test.url, batch, under(good)))).toEqual(elsewhere)
    const member = { ...call('cell_create', { data: {} }), idempotency_key: good }
    expect(await refusal(rpc(test.url, member, { cookie: ada.cookie }))).toEqual(elsewhere)
    const inBatch = await rpc(test.url, [member], { cookie: ada.cookie })
    expect(inBatch.json).toMatchObject([{ error: { data: { detail: 'idempotency_not_supported' } } }])
    for (const method of ['cell_list', 'open'])
      expect(await refusal(rpc(test.url, call(method), under(good)))).toEqual(elsewhere)
    for (const path of ['/api/rpc?method=cell_list&id=1', '/api/account/status', '/api/account/audit/stream'])
      expect([path, ...(await refusal(send(test.url, { path, headers: under(good) })))]).toEqual([
        path,
        ...elsewhere,
      ])
    const login = { path: '/api/account/login', method: 'POST', body: ada, headers: under(good) }
    expect(await refusal(send(test.url, login))).toEqual(elsewhere)
    expect((await send(test.url, { path: '/health', headers: under(good) })).status).toBe(200)
    expect(await cellCount()).toBe(cells)
  })

  it('over a WebSocket is a member of the envelope, and so is the mark of a replayed reply', async () => {
    const socket = await openSocket(test.url, { cookie: ada.cookie })
    const say = async (id: number, idempotency_key: unknown) => {
      socket.send({ ...call('cell_create', { data: { by: 'socket' } }, id), idempotency_key })
      return await socket.next()
    }
    const key = newKey()
    const first = await say(1, key)
    expect(await say(2, key)).toEqual({ ...first, id: 2, replayed: true })
    expect((await create(key, { data: { by: 'socket' } })).json).toEqual({ ...first, id: 1 })
    for (const bad of ['short', null, 1, { key }])
      expect(outcomeOf(await say(3, bad))).toBe('-32600 invalid_request idempotency_key')
    await socket.close()
  })

  it('works for calls in process', async () => {
    const options = { headers: { cookie: ada.cookie }, idempotency_key: newKey() }
    const inProcess = test.service.call as (...args: unknown[]) => Promise<unknown>
    const first = await test.service.call('cell_create', { data: {} }, options)
    expect(await test.service.call('cell_create', { data: {} }, options)).toEqual(first)
    const big = { ...options, idempotency_key: newKey() }
    await inProcess('answer', { big: 1n }, big)
    await expect(inProcess('answer', { big: 2n }, big)).rejects.toThrow('idempotency_key_reused')
    await expect(test.service.call('cell_list', {}, options)).rejects.toMatchObject({
      data: { detail: 'idempotency_not_supported' },
    })
  })
})

describe('what is kept', () => {
  it('is no secret, and nothing of more than 64 KiB: the repetition learns when it was done', async () => {
    const bob = await test.account()
    const made = call('account_token_create', { scope: { kind: 'full' }, lifetime: { kind: 'eternal' } })
    const large = call('answer', { text: 'x'.repeat(65_600) })
    for (const body of [made, large]) {
      const key = newKey()
      const first = await rpc(test.url, body, under(key, bob))
      expect(first.status).toBe(200)
      const again = await scenario(test, () => rpc(test.url, body, under(key, bob)))
      expect([again?.status, again && dataOf(again)]).toEqual([
        409,
        { reason: 'idempotency_replayed', completed_at: expect.stringMatching(/^\d{4}-.*Z$/) },
      ])
      expect(again && isReplayed(again)).toBe(false)
    }
    expect(await rowsOf(bob.id)).toEqual([{ reply: null }, { reply: null }])
  })

  it('goes with the account, also where the call is still under way', async () => {
    const bob = await test.account()
    await create(newKey(), { data: {} }, bob)
    expect(await rowsOf(bob.id)).toHaveLength(1)
    const begun = Promise.withResolvers<void>()
    const purged = Promise.withResolvers<void>()
    act = async () => {
      begun.resolve()
      await purged.promise
      return { text: 'still here' }
    }
    const late = rpc(test.url, call('answer'), under(newKey(), bob))
    await begun.promise
    await test.service.operations.purgeAccount({ account_id: bob.id, confirm: true }, { via: 'testing' })
    expect(await rowsOf(bob.id)).toEqual([])
    purged.resolve()
    await late
    act = undefined
    expect(await rowsOf(bob.id)).toEqual([{ reply: null }])
  })

  it('ends after a day by the clock of the database, and the cleanup removes it', async () => {
    const bob = await test.account()
    const key = newKey()
    const first = await create(key, { data: {} }, bob)
    const later = (by: string) =>
      db().run(sql`
        update idempotency_key set created_at = created_at - ${by}::interval, expires_at = expires_at - ${by}::interval
        where account_id = ${bob.id}::uuid`)
    await later('23 hours 59 minutes')
    expect((await create(key, { data: {} }, bob)).text).toBe(first.text)
    await later('1 minute')
    const anew = await create(key, { data: { n: 2 } }, bob)
    expect([anew.status, isReplayed(anew)]).toEqual([200, false])
    expect((await create(key, { data: { n: 2 } }, bob)).text).toBe(anew.text)
    await db().run(sql`
      insert into idempotency_key (account_id, key_hash, request_hash, expires_at)
      select ${bob.id}::uuid, sha256(n::text::bytea), '', now() from generate_series(1, 2500) n`)
    await test.service.operations.cleanUp({})
    expect(await rowsOf(bob.id)).toHaveLength(1)
  })

  it('is at most 10,000 live keys of an account; the next has to wait for the oldest, but repetitions work', async () => {
    const bob = await test.account()
    const key = newKey()
    await create(key, { data: {} }, bob)
    const plant = (count: number) =>
      db().run(sql`
        insert into idempotency_key (account_id, key_hash, request_hash, expires_at)
        select ${bob.id}::uuid, sha256((random() || ':' || n)::bytea), '', now() + interval '90 seconds'
        from generate_series(1, ${count}::int) n`)
    await plant(9_998)
    expect((await create(newKey(), { data: {} }, bob)).status).toBe(200)
    const refused = await scenario(test, () => create(newKey(), { data: {} }, bob))
    expect(refused?.status).toBe(429)
    const { reason, retry_after } = (refused && dataOf(refused)) as { reason: string; retry_after: number }
    expect(reason).toBe('rate_limited')
    expect(retry_after).toBeGreaterThan(60)
    expect(retry_after).toBeLessThanOrEqual(90)
    expect(refused?.headers['retry-after']).toBe(String(retry_after))
    expect(isReplayed(await create(key, { data: {} }, bob))).toBe(true)
    await db().run(sql`
      update idempotency_key set expires_at = now() where account_id = ${bob.id}::uuid and reply is null`)
    expect((await create(newKey(), { data: {} }, bob)).status).toBe(200)
  })
})

it('guards judge a repetition afresh, but a right on one cell that is lost hides nothing', async () => {
  const bob = await test.account()
  const { cell } = await ada.client.cell_create({ data: {} })
  const { grant } = await ada.client.cell_grant_create({
    cell_id: cell.id,
    level: 'editor',
    principal: { kind: 'actor', actor_id: bob.actor_id },
  } as never)
  const made = await tokenOf(test, bob)
  const key = newKey()
  const body = call('cell_update', { cell_id: cell.id, data: { n: 1 } })
  const update = () => rpc(test.url, body, { ...bearer(made.token), 'idempotency-key': key })
  const first = await update()
  expect(first.status).toBe(200)
  await ada.client.cell_grant_revoke({ grant_id: grant.id } as never)
  expect((await update()).text).toBe(first.text)
  await bob.client.account_token_revoke({ token_id: made.id } as never)
  expect(await update()).toMatchObject({ status: 401 })
  const root = await test.account({ roles: ['admin'] })
  const invite = () => rpc(test.url, call('invite_create', { username: 'eve' }), under(key, root))
  expect(reasonOf(await invite())).toBe('ok')
  await db().run(sql`update role_grant set revoked_at = now() where actor_id = ${root.actor_id}::uuid`)
  expect(await invite()).toMatchObject({ status: 403 })
})

it('a call without a key sends the statements that it always sent, and one with a key two more', async () => {
  // Otherwise the last use of a token from an earlier test might be written now.
  await test.service.app.lastUsed.flush()
  const sent = async (headers: Record<string, string>) => {
    statements.length = 0
    expect((await rpc(test.url, call('cell_create', { data: {} }), headers)).status).toBe(200)
    return statements.map((text) =>
      text.includes('idempotency_key') ? 'key' : text.includes('audit_write') ? 'audit' : 'other',
    )
  }
  expect((await sent({ cookie: ada.cookie })).length).toBe(2)
  expect(statements.join()).not.toContain('idempotency')
  expect(await sent(under(newKey()))).toEqual(['other', 'key', 'other', 'key', 'audit'])
})

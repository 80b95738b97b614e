import { beforeEach, describe, expect, test as it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, dataOf, reasonOf, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { type Database, sql } from '../db/db.ts'
import { refusal, ServiceError } from '../errors.ts'
import { mutation, query } from './declare.ts'

const auth = { account: 'required', actor: 'required' } as const
const secret = 'a secret of the handler'
let answer: () => unknown = () => null
let runs = 0

const note = (db: Pick<Database, 'run'>) => db.run(sql`insert into note default values`)
const actions = {
  reads: query({
    doc: 'Answers what the test says.',
    auth: { account: 'none', actor: 'none' },
    output: z.unknown(),
    handler: async () => answer(),
  }),
  writes: mutation({
    doc: 'Writes a note and answers what the test says.',
    auth,
    event: 'cell_update',
    output: z.unknown(),
    async handler(_input, { db }) {
      runs += 1
      await note(db)
      return answer()
    },
  }),
  limited: mutation({
    doc: 'Writes a note, twice per account and window.',
    auth,
    event: 'cell_update',
    rate_limit: 'both',
    // Named like the setting `limit_store`, whose value must not become its limit.
    rate_limit_group: 'store',
    output: z.null(),
    async handler(_input, { db }) {
      await note(db)
      return null
    },
  }),
  found: query({
    doc: 'May be called twice per account, and per address.',
    auth,
    rate_limit: 'both',
    rate_limit_group: 'lookup',
    output: z.null(),
    handler: async () => null,
  }),
}

const refuseLater = async (fail: () => Error): Promise<never> => {
  throw fail()
}
const late = query({
  doc: 'Refuses every call, but too late.',
  auth: { account: 'none', actor: 'none' },
  output: z.unknown(),
  errors: ['cell_not_found'],
  // Not `async`, which the start refuses.
  refine: (_input, { fail }) => refuseLater(() => fail('cell_not_found')),
  async handler() {
    runs += 1
    return answer()
  },
})

const captured = capturedLog()
const test = await serviceForFile({
  actions: { ...actions, late },
  log: captured.log,
  limit_lookup: '2/900',
  trusted_proxies: ['127.0.0.1'],
})
const ada = await test.account()
await test.service.app.db.run(sql`create table note (id int generated always as identity)`)
beforeEach(async () => {
  runs = 0
  await test.service.app.db.run(sql`truncate note`)
})

const ask = (method: string, params?: unknown) => rpc(test.url, call(method, params), { cookie: ada.cookie })
const notes = async () => (await test.service.app.db.rows(sql`select from note`)).length
const internal = {
  code: -32603,
  message: 'The server failed unexpectedly.',
  data: { reason: 'internal_error' },
}

describe('a method of a consumer', () => {
  it('is guarded like a built-in one', async () => {
    answer = () => 1
    expect(reasonOf(await rpc(test.url, call('writes')))).toBe('authentication_required')
    expect(reasonOf(await ask('writes', { acting: null }))).toBe('invalid_params')
    expect(reasonOf(await ask('writes', { x: 1 }))).toBe('invalid_params')
    expect(runs).toBe(0)
  })

  it('does not run if its refine is asynchronous, so that no check is passed over', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    expect(reasonOf(await ask('late'))).toBe('internal_error')
    expect(captured.lines().find(({ event }) => event === 'request_failed')).toMatchObject({
      err: { message: expect.stringMatching(/^late: refine must not be asynchronous/) },
    })
    expect([runs, unhandled]).toEqual([0, []])
  })

  it('commits what it wrote when it answers', async () => {
    answer = () => ({ done: true })
    expect((await ask('writes')).json).toEqual({ jsonrpc: '2.0', id: 1, result: { done: true } })
    expect(await notes()).toBe(1)
  })

  it('that is limited per address and account charges neither if one of them refuses', async () => {
    const [bob, eve] = [await test.account(), await test.account()]
    const thrice = async ({ cookie }: { cookie: string }, ip: string) => {
      const reasons: unknown[] = []
      for (let i = 0; i < 3; i++)
        reasons.push(reasonOf(await rpc(test.url, call('found'), { cookie, 'x-forwarded-for': ip })))
      return reasons
    }
    const all = ['ok', 'ok', 'rate_limited']
    const none = ['rate_limited', 'rate_limited', 'rate_limited']
    expect(await thrice(ada, '203.0.113.1')).toEqual(all)
    expect(await thrice(ada, '2001:db8::1')).toEqual(none)
    expect(await thrice(bob, '2001:db8::1')).toEqual(all)
    expect(await thrice(eve, '203.0.113.1')).toEqual(none)
    expect(await thrice(eve, '203.0.113.2')).toEqual(all)
  })

  it('has a limit of its own, whatever its group is called', async () => {
    for (let i = 0; i < 3; i++) expect(reasonOf(await ask('limited'))).toBe('ok')
  })
})

const cyclic: { self?: unknown } = {}
cyclic.self = cyclic
const unsayable: [what: string, value: unknown][] = [
  ['nothing', undefined],
  ['a BigInt', { n: 1n }],
  ['a cycle', cyclic],
  ['a function', () => 1],
  ['a symbol', Symbol('x')],
  ['an object that says it is nothing', { toJSON: () => undefined }],
  [
    'a failing toJSON',
    {
      toJSON() {
        throw new Error(secret)
      },
    },
  ],
]

describe('a result that JSON cannot express', () => {
  it.each(unsayable)('%s is an internal error, and the mutation is undone', async (_what, value) => {
    answer = () => value
    for (const method of ['reads', 'writes']) {
      const reply = await ask(method)
      expect([reply.status, reply.json]).toEqual([500, { jsonrpc: '2.0', id: 1, error: internal }])
    }
    expect([runs, await notes()]).toEqual([1, 0])
  })
})

describe('a thrown value', () => {
  const throwing = (value: unknown) => () => {
    throw value
  }
  const unreadable = (key: string) =>
    Object.defineProperty(new Error(secret), key, { enumerable: true, get: throwing(new Error(secret)) })
  const foreign = Object.assign(new Error(secret), { code: -32001, status: 401, data: { reason: 'x' } })
  const hidden: [what: string, value: unknown][] = [
    ['an error', new Error(secret)],
    ['an error that looks like ours', foreign],
    ['a text', secret],
    ['nothing', undefined],
    ['null', null],
    ['an object', { code: -32001, message: secret }],
    ['a code below the table', new ServiceError(-32100, { reason: 'secret_reason' })],
    ['a positive code', new ServiceError(1, { reason: 'secret_reason' })],
    ['a fractional code', new ServiceError(-32000.5, { reason: 'secret_reason' })],
    ['a status that is no refusal', new ServiceError(-32001, { reason: 'secret_reason' }, 200)],
    ['a reason that is no token', new ServiceError(-32050, { reason: secret })],
    ['a reason that is no text', new ServiceError(-32050, { reason: 1 as unknown as string })],
    ['data that JSON cannot say', new ServiceError(-32050, { reason: 'secret_reason', n: 1n })],
    ['cyclic data', new ServiceError(-32050, { reason: 'secret_reason', cyclic })],
    ['a frozen error', Object.freeze(new Error(secret))],
    ['an error whose code is no text', Object.assign(new Error(secret), { code: Object.create(null) })],
    ['an error whose code cannot be read', unreadable('code')],
    ['an error whose detail cannot be read', unreadable('detail')],
    ['what cannot be read at all', new Proxy({}, { get: throwing(new Error(secret)) })],
  ]
  it.each(hidden)('%s is an internal error without a word of it', async (_what, value) => {
    answer = throwing(value)
    for (const method of ['reads', 'writes']) {
      const reply = await ask(method)
      expect([reply.status, reply.json]).toEqual([500, { jsonrpc: '2.0', id: 1, error: internal }])
    }
    expect(await notes()).toBe(0)
    expect(captured.lines().filter(({ msg }) => msg === 'a request failed unexpectedly')).not.toEqual([])
  })

  it.each([
    [refusal('cell_not_found'), 404, -32003],
    [refusal('cell_version_conflict', { current_version: 3 }), 409, -32004],
    [new ServiceError(-32005, { reason: 'my_content', hint: 'x' }), 422, -32005],
    [new ServiceError(-32099, { reason: 'mine' }), 500, -32099],
    [new ServiceError(-32000, { reason: 'mine' }, 451), 451, -32000],
  ])('%s of ours reaches the caller as it is', async (error, status, code) => {
    answer = throwing(error)
    const reply = await ask('writes')
    expect([reply.status, reply.json]).toEqual([
      status,
      { jsonrpc: '2.0', id: 1, error: { code, message: expect.any(String), data: error.data } },
    ])
    expect(await notes()).toBe(0)
  })

  it('in one entry of a batch leaves the others alone', async () => {
    let calls = 0
    answer = () => {
      calls += 1
      if (calls === 2) throw new ServiceError(-32050, { reason: 'mine', n: 1n })
      return calls
    }
    const batch = [call('writes'), call('writes'), call('nothing'), {}, call('writes')]
    const { status, json } = await rpc(test.url, batch, { cookie: ada.cookie })
    expect(status).toBe(200)
    expect(json).toMatchObject([
      { result: 1 },
      { error: internal },
      { error: { code: -32601 } },
      { error: { code: -32600 } },
      { result: 3 },
    ])
    expect(await notes()).toBe(2)
  })
})

describe('an error of the database', () => {
  it('is an internal error, and neither the reply nor the log quotes a value', async () => {
    const { db } = test.service.app
    const values = ['quoted-value', 'topsecrethash']
    const failing = [
      () => db.rows(sql`select ${values[0]}::uuid`),
      () => db.rows(sql`select ${values[0]}::int`),
      () => db.rows(sql`select ('{"a":' || ${values[0]}::text)::json`),
      () => db.point(sql`select ${values[0]}::timestamptz`),
      () => db.run(sql`insert into account (username, password_hash) values ('QUOTED-VALUE', ${values[1]})`),
      () => db.run(sql`insert into account (username, password_hash) values (${ada.username}, ${values[1]})`),
      () => db.run(sql`insert into account (username) values (${values[0]})`),
      () => db.run(sql`update actor set account_id = gen_random_uuid() where id = ${ada.actor_id}`),
    ]
    for (const fail of failing) {
      answer = fail
      const reply = await ask('reads')
      expect([reply.status, dataOf(reply)]).toEqual([500, { reason: 'internal_error' }])
      expect(captured.lines().at(-2)).toMatchObject({ level: 'error', err: { code: expect.any(String) } })
    }
    for (const value of [...values, 'QUOTED-VALUE']) expect(captured.text()).not.toContain(value)
  })
})

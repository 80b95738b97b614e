import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tokenOf } from '../../test/helpers/callers.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { rpc, call as rpcCall } from '../../test/helpers/http.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { mutation, query } from './declare.ts'
import type { Method } from './method.ts'

const names = [
  'a b',
  'ä/ö?&=#%20',
  '名前',
  '😀',
  '1',
  'a,b',
  '"quoted"',
  'line\nbreak',
  'RPC.x',
  'rpc',
  '*',
  'constructor',
  '__proto__',
  'hasOwnProperty',
  'toString',
  'valueOf',
  'prototype',
  'then',
  'toJSON',
  'try',
  'x'.repeat(300),
]

const auth = { account: 'required', actor: 'required' } as const
const reading = (method: string) =>
  query({
    doc: 'Answers its name.',
    auth,
    rate_limit: 'account',
    output: z.object({ method: z.string() }),
    handler: async () => ({ method }),
  }) as unknown as Method
const writing = mutation({
  doc: 'Writes an audit row.',
  auth,
  event: 'cell_update',
  rate_limit: 'account',
  output: z.object({ done: z.literal(true) }),
  handler: async () => ({ done: true as const }),
}) as unknown as Method
const actions = Object.fromEntries([
  ...names.map((name) => [name, reading(name)]),
  ...names.map((name) => [`write ${name}`, writing]),
]) as Record<string, Method>

const captured = capturedLog()
let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService({ actions, log: captured.log, limit_store: 'postgres' })
  ada = await test.account()
})
afterAll(() => test.close())

describe.each(names)('a method named %j', (method) => {
  const call = (client: object, name = method) => (client as Record<string, () => unknown>)[name]?.()

  it('is called by POST, GET and in process, with its limit, and logged by its name', async () => {
    const cookie = ada.cookie
    const posted = await rpc(test.url, rpcCall(method), { cookie })
    expect(posted.json).toMatchObject({ result: { method } })
    const query = new URLSearchParams({ method, id: '1' })
    const got = await fetch(`${test.url}/api/rpc?${query}`, { headers: { cookie } })
    expect(await got.json()).toMatchObject({ result: { method } })
    expect(await test.service.call(method, undefined, { headers: { cookie } })).toEqual({ method })
    expect(await test.service.call(`write ${method}` as string, {}, { headers: { cookie } })).toEqual({
      done: true,
    })
    expect(captured.lines().map(({ rpc_method }) => rpc_method)).toContain(method)
  })

  it('is callable on the client, unless the client reserves the name', async () => {
    const own = ['then', 'toJSON', 'try']
    if (!own.includes(method)) expect(await call(ada.client)).toEqual({ method })
    if (method !== 'then' && method !== 'toJSON')
      expect(await call(ada.client.try)).toEqual({ ok: true, result: { method } })
    expect(await call(ada.client, `write ${method}`)).toEqual({ done: true })
  })

  it('can be the only method in the scope of a token', async () => {
    const { headers } = await tokenOf(test, ada, { kind: 'methods', methods: [method] })
    const others = [...names.filter((name) => name !== method), `write ${method}`]
    const { json } = await rpc(
      test.url,
      [method, ...others].map((name, id) => rpcCall(name, undefined, id)),
      headers,
    )
    expect(json).toMatchObject([
      { result: { method } },
      ...others.map(() => ({ error: { data: { reason: 'token_scope_required' } } })),
    ])
  })
})

it('a name in a scope reads as one', async () => {
  const methods = ['a,b', 'rpc', '名前']
  const { scope } = await ada.client.account_token_create({
    scope: { kind: 'methods', methods },
    lifetime: { kind: 'eternal' },
  })
  expect(scope).toBe('methods:"a,b",rpc,"名前"')
})

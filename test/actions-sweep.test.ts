import { Agent } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { actions } from '../src/actions.ts'
import type { Method } from '../src/core/method.ts'
import { sql } from '../src/db/db.ts'
import { isErrorCode } from '../src/error-codes.ts'
import { events } from '../src/events.ts'
import { catalogue } from '../src/reasons.ts'
import { type TestAccount, type TestService, testService } from '../src/testing/index.ts'
import { call, dataOf, type Reply, reasonOf, rpc, send } from './helpers/http.ts'
import { mailIsDown } from './helpers/mailed.ts'
import { providerIsDown } from './helpers/oidc.ts'
import { onLocalhost } from './helpers/passkeys.ts'

/** Rules that hold for every method. A new method is tested as soon as it is in the table. */

let test: TestService
/** Passes every guard of the built-in methods, with one actor. */
let account: TestAccount
/** The same with two actors. */
let several: TestAccount
beforeAll(async () => {
  test = await testService({
    ...mailIsDown,
    ...onLocalhost,
    ...providerIsDown,
    app_settings: true,
    self_service_roles: [],
    username_change: 'self',
  })
  account = await keeper()
  several = await keeper()
  await test.actor(several.id, 'second')
})
afterAll(() => test.close())
/** Keeps connections for thousands of requests, none of which tests the connection. */
const agent = new Agent({ keepAlive: true })

const all = Object.entries(actions as Record<string, Method>).map(([method, action]) => ({
  ...action,
  method,
  input: action.input as z.ZodObject,
}))
/** The other methods refuse a session before they check their input. */
const bySession = all.filter(({ auth }) => auth.credential_types?.includes('session') ?? true)
const open = all.filter(({ auth }) => auth.account !== 'required')
const guarded = all.filter(({ auth }) => auth.account === 'required')
const acting = bySession.filter(({ auth }) => auth.actor !== 'none')
const writing = all.filter(({ side_effects }) => side_effects)
const reading = all.filter(({ side_effects }) => !side_effects)
const noInput = all.filter(({ input }) => Object.keys(input.shape).length === 0)

const keeper = (): Promise<TestAccount> => test.account({ roles: ['admin', 'keeper'] })
const raw = (text: string, account?: TestAccount): Promise<Reply> =>
  rpc(test.url, text, account && { cookie: account.cookie }, agent)
const post = (method: string, params?: unknown, account?: TestAccount): Promise<Reply> =>
  raw(JSON.stringify(call(method, params)), account)
const get = (method: string, params: unknown, account?: TestAccount): Promise<Reply> =>
  send(test.url, {
    path: `/api/rpc?method=${method}&id=1&params=${encodeURIComponent(JSON.stringify(params))}`,
    headers: account ? { cookie: account.cookie } : {},
    agent,
  })
const refusal = (path: (string | number)[], code: string, rule = '') => ({
  reason: 'invalid_params',
  issues: [{ path, code, message: expect.stringContaining(rule) }],
})

describe.each(all)('the declaration of $method', (action) => {
  it('has every field of the specification', () => {
    expect(action).toMatchObject({
      kind: 'request_response',
      initiator: 'frontend',
      async: true,
      auth: { account: expect.any(String), actor: expect.any(String) },
      side_effects: expect.any(Boolean),
      description: expect.stringMatching(/^[A-Z].{10,200}\.$/s),
    })
    expect(action.input).toBeInstanceOf(z.ZodObject)
    expect(action.output).toBeInstanceOf(z.ZodType)
  })

  it('is wired under its own name, with acting exactly where an actor is resolved', () => {
    const wired = test.service.app.actions.get(action.method)
    expect(wired).toMatchObject({ method: action.method, scope: `rpc:${action.method}` })
    const { properties } = z.toJSONSchema(wired?.params as z.ZodType, { io: 'input', unrepresentable: 'any' })
    expect('acting' in (properties ?? {})).toBe(action.auth.actor !== 'none')
  })

  it('lists reasons of the catalogue, each once, whose code may be answered', () => {
    const reasons: readonly string[] = action.error_reasons
    expect(new Set(reasons).size).toBe(reasons.length)
    for (const reason of reasons) {
      expect(catalogue).toHaveProperty(reason)
      expect(isErrorCode(catalogue[reason as keyof typeof catalogue].code)).toBe(true)
    }
  })

  it('names the audit event of its transaction exactly when it has side effects', () => {
    if (action.side_effects) expect(events).toHaveProperty(action.event as string)
    else expect(action.event).toBeUndefined()
  })

  it('can be expressed in JSON Schema, input and output', () => {
    for (const [schema, io] of [[action.input, 'input'] as const, [action.output, 'output'] as const])
      expect(z.toJSONSchema(schema, { io, unrepresentable: 'any' })).toBeTypeOf('object')
  })

  it('says whether its reply holds a secret, which must not be kept for repetitions', () => {
    const secrets = ['token', 'secret', 'link', 'recovery_codes']
    const holdsSecret = secrets.some((key) => key in ((action.output as z.ZodObject).shape ?? {}))
    expect(action.secret_reply ?? false).toBe(action.side_effects && holdsSecret)
  })
})

describe('a method for admins', () => {
  const forAdmins = all.filter(({ auth }) => auth.roles?.includes('admin'))
  it.each([
    ['who has no role', `delete from role_grant`],
    ['whose grant is revoked', `update role_grant set revoked_at = now()`],
    ['whose grant is closed', `update role_grant set closed_at = now()`],
    ['whose grant has expired', `update role_grant set expires_at = date_trunc('milliseconds', now())`],
    ['whose grant is at a scope', `update role_grant set scope_kind = 'place', scope_id = actor_id`],
    ['who is a keeper', `update role_grant set role = 'keeper'`],
  ])('is refused to an account %s, whatever the params', async (_who, change) => {
    const ada = await test.account({ roles: ['admin'] })
    await test.service.app.db.run(sql`${sql.raw(change)} where actor_id = ${ada.actor_id}::uuid`)
    expect(forAdmins.length).toBeGreaterThan(10)
    for (const { method } of forAdmins)
      for (const params of [{}, { zz_unknown: 1 }]) {
        const reply = await post(method, params, ada)
        expect([method, reply.status, dataOf(reply)]).toEqual([
          method,
          403,
          { reason: 'insufficient_permissions', required_roles: ['admin'] },
        ])
      }
  })
})

describe.each(guarded)('$method without a credential', ({ method, side_effects }) => {
  it('is 401, whatever the params', async () => {
    for (const params of [undefined, {}, { zz_unknown: 1 }, { acting: 'x' }, { acting: null }, { '\0': 1 }]) {
      const reply = await post(method, params)
      expect([reply.status, dataOf(reply)]).toEqual([401, { reason: 'authentication_required' }])
      if (!side_effects) expect((await get(method, params ?? {})).status).toBe(401)
    }
    if (!side_effects)
      expect((await send(test.url, { path: `/api/rpc?method=${method}&id=1&params=[` })).status).toBe(401)
  })
})

describe.each(bySession)('the input of $method', ({ method, side_effects, input }) => {
  it('takes no unknown keys, in any of its objects', async () => {
    const known = new Set(Object.keys(input.shape))
    const others = ['zz_unknown', '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'Acting']
    for (const key of others.filter((name) => !known.has(name))) {
      // Written as text, because a literal `__proto__` would set the prototype.
      const text = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"${key}":{"polluted":1}}}`
      const reply = await raw(text, account)
      expect([key, reply.status, reasonOf(reply)]).toEqual([key, 400, 'invalid_params'])
      expect(dataOf(reply)?.issues).toContainEqual({
        path: [key],
        code: 'unrecognized_keys',
        message: expect.any(String),
      })
    }
    expect(Object.prototype).not.toHaveProperty('polluted')
  })

  it('refuses U+0000 and lone surrogates in every value and key, and never fails', async () => {
    const keys = [...Object.keys(input.shape), 'zz_unknown']
    for (const [at, key] of keys.entries())
      for (const [nth, bad] of ['a\0b', 'a\ud800b', '\udc00'].entries()) {
        const depths = [
          { value: bad, path: [key] },
          { value: [[bad]], path: [key, 0, 0] },
          { value: { x: { y: bad } }, path: [key, 'x', 'y'] },
        ] as const
        // The depth alternates from key to key.
        const { value, path } = depths[((at + nth) % 3) as 0 | 1 | 2]
        const params = { [key]: value }
        const expected = [400, refusal([...path], 'invalid_format', 'U+0000')]
        const reply = await post(method, params, account)
        expect([reply.status, dataOf(reply)]).toEqual(expected)
        if (side_effects) continue
        const viaGet = await get(method, params, account)
        expect([viaGet.status, dataOf(viaGet)]).toEqual(expected)
      }
    for (const key of ['\0', '\ud800'])
      for (const params of [{ [key]: 1 }, { [keys[0] as string]: { [key]: 1 } }]) {
        const reply = await post(method, params, account)
        expect([reply.status, reasonOf(reply)]).toEqual([400, 'invalid_params'])
      }
  })

  it('is never echoed by a refusal', async () => {
    const marker = 'marker-of-the-caller'
    for (const key of Object.keys(input.shape))
      for (const value of [marker, [marker], { x: marker }, `${marker}\0`]) {
        const reply = await post(method, { [key]: value }, account)
        if (reply.status !== 200) expect(reply.text).not.toContain(marker)
        expect([key, reply.status]).not.toEqual([key, 500])
      }
  })

  it('of any type is refused or accepted, and never fails', async () => {
    const values = ['null', 'true', '0', '-1', '1.5', '1e400', '9007199254740993', '""', '[]', '{}', '[null]']
    for (const key of Object.keys(input.shape))
      for (const value of values) {
        const text = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"${key}":${value}}}`
        const reply = await raw(text, account)
        expect([key, value, reply.status]).toEqual([key, value, expect.toBeOneOf([200, 400, 403, 404])])
      }
  })
})

/** Null means absent, or has a meaning of its own. The lists of roles, offers, the audit log and cells have their own rules. */
const nullable: Record<string, string[]> = {
  account_delete: ['account_id'],
  account_delete_preview: ['account_id'],
  account_email_change: ['email'],
  actor_search: ['limit'],
  admin_account_email_set: ['email'],
  admin_account_list: ['include_deleted', 'query', 'role', 'limit', 'cursor'],
  admin_message_list: ['limit', 'cursor'],
  admin_session_list: ['account_id', 'limit', 'cursor'],
  admin_ticket_list: ['limit', 'cursor'],
  admin_token_list: ['account_id', 'limit', 'cursor'],
  invite_create: ['email', 'username', 'expires_at'],
  invite_list: ['limit', 'cursor'],
}
const ofIdentity = bySession.filter(({ method }) => /^(account|actor|admin|app|invite)_/.test(method))

it.each(ofIdentity)('$method takes null only where that is said', async ({ method, input }) => {
  const taken: string[] = []
  for (const key of Object.keys(input.shape)) {
    const data = dataOf(await post(method, { [key]: null }, account))
    const issues = (data?.issues ?? []) as { path: string[]; code: string }[]
    if (!issues.some(({ path, code }) => path[0] === key && code === 'invalid_type')) taken.push(key)
  }
  expect(taken.sort()).toEqual(nullable[method]?.toSorted() ?? [])
})

describe.each(acting)('acting of $method', ({ method, auth }) => {
  it.each([null, '', 1, true, [], {}, 'x', '11111111-1111-1111-1111-11111111111', '\0'])(
    '%j is malformed, with one actor or several',
    async (value) => {
      const code = typeof value === 'string' ? 'invalid_format' : 'invalid_type'
      for (const caller of [account, several]) {
        const reply = await post(method, { acting: value }, caller)
        expect([reply.status, dataOf(reply)]).toEqual([400, refusal(['acting'], code)])
      }
      if (auth.account === 'optional')
        expect(dataOf(await post(method, { acting: value }))).toEqual(refusal(['acting'], code))
    },
  )

  it('must be chosen among several, before the input is looked at', async () => {
    for (const params of [undefined, {}, { zz_unknown: 1 }])
      expect(reasonOf(await post(method, params, several))).toBe('actor_required')
  })
})

describe.each(writing)('$method by GET', ({ method }) => {
  it('is refused before any guard', async () => {
    for (const caller of [undefined, account])
      for (const params of ['', '&params={}', '&params=[']) {
        const reply = await send(test.url, {
          path: `/api/rpc?method=${method}&id=1${params}`,
          headers: caller ? { cookie: caller.cookie } : {},
        })
        expect([reply.status, dataOf(reply)]).toEqual([
          400,
          { reason: 'invalid_request', detail: 'get_not_allowed' },
        ])
      }
  })
})

/** It reports the memory in use, which differs from call to call. */
const steady = reading.filter(({ method }) => method !== 'service_status')

describe.each(steady)('$method by GET', ({ method, auth }) => {
  it('answers as by POST', async () => {
    for (const params of [{}, { zz_unknown: 1 }]) {
      const replies = await Promise.all([get(method, params, account), post(method, params, account)])
      expect(replies[0]?.json).toEqual(replies[1]?.json)
    }
    if (auth.account !== 'required')
      expect((await get(method, {})).json).toEqual((await post(method, {})).json)
  })
})

describe.each(noInput)('$method takes no input', ({ method }) => {
  it('and succeeds with params that are absent or empty', async () => {
    // One method needs a second factor first.
    for (const params of [undefined, {}])
      expect(['ok', 'second_factor_missing']).toContain(reasonOf(await post(method, params, await keeper())))
    expect(reasonOf(await post(method, { x: 1 }, await keeper()))).toBe('invalid_params')
  })
})

describe.each(open)('$method', ({ method }) => {
  it('answers anonymous callers with something other than 401', async () => {
    expect((await post(method, {})).status).not.toBe(401)
  })
})

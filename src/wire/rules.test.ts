import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, dataOf, rpc, send } from '../../test/helpers/http.ts'
import { query } from '../core/declare.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

/** A refusal says in words what the input should have been, by whichever way it came in. */

const Node = z.strictObject({
  name: z.string(),
  get below() {
    return z.array(Node)
  },
})
const choice = query({
  doc: 'Takes either shape.',
  auth: { account: 'none', actor: 'none' },
  input: z.strictObject({
    either: z
      .union([z.strictObject({ at: z.int().max(9) }), z.strictObject({ name: z.string() })])
      .optional(),
    tree: z.union([z.int(), Node, z.strictObject({ only: Node })]).optional(),
    list: z.array(z.int()).min(2).optional(),
    step: z.int().multipleOf(5).optional(),
    said: z.string({ error: ({ input }) => `got ${String(input)}` }).optional(),
    most: z.number().lt(5).optional(),
  }),
  output: z.object({}),
  handler: async () => ({}),
})

let test: TestService
let admin: TestAccount
beforeAll(async () => {
  test = await testService({ app_settings: true, actions: { choice } })
  admin = await test.account({ roles: ['admin'] })
})
afterAll(() => test.close())

const messages = async (method: string, params: object): Promise<string[]> => {
  const reply = await rpc(test.url, call(method, params), { cookie: admin.cookie })
  const { issues } = dataOf(reply) as { issues: { message: string }[] }
  return issues.map(({ message }) => message)
}
const uuid = '11111111-1111-4111-8111-111111111111'
const shapes = {
  scope:
    'Accepted: { kind: "full" } | { kind: "read_only" } | { kind: "methods", methods: string[](1..100) }.',
  principal:
    'Accepted: { kind?: "actor", actor_id: Uuid } | { kind?: "role", role: string(1..128), scope_id?: Uuid | null }.',
}
const time =
  'A time with its zone is required, such as 2026-01-02T03:04:05Z or 2026-01-02T04:04:05.678+01:00.'

describe('the message of an issue', () => {
  it.each<[method: string, params: object, ...string[]]>([
    ['cell_get', { id: 'x' }, 'A UUID is required, such as 3f2b8c1e-0d4a-4b6e-9f0a-7c5d2e1b8a90.'],
    ['cell_get', { id: 7 }, 'A string is required.'],
    ['cell_get', { path: '' }, 'At least 1 character.'],
    ['cell_get', { path: 'x'.repeat(257) }, 'At most 256 characters.'],
    ['cell_list', { visibility: 'hidden' }, 'Accepted: "private", "public".'],
    ['cell_list', { limit: 201 }, 'At most 200.'],
    ['cell_list', { limit: 1.5 }, 'An integer is required.'],
    ['cell_list', { ids: Array(201).fill(uuid) }, 'At most 200 entries.'],
    ['cell_list', { shared_with: 'you' }, 'Accepted: "me".'],
    ['cell_delete', { cell: uuid }, 'A string is required.', 'Unknown key; known ones: cell_id, acting.'],
    ['account_verify', { x: 1 }, 'Unknown key. No keys are accepted here.'],
    ['account_token_create', { scope: { kind: 'all' }, lifetime: { kind: 'eternal' } }, shapes.scope],
    ['cell_grant_create', { cell_id: uuid, level: 'viewer', principal: {} }, shapes.principal],
    ['invite_create', { expires_at: 'tomorrow' }, time],
    ['invite_create', { email: 'ada' }, 'An e-mail address is required, such as ada@example.org.'],
    ['invite_create', { email: `${'ä'.repeat(130)}@example.org` }, 'At most 254 bytes.'],
    ['choice', { either: 7 }, 'Accepted: { at: integer(..9) } | { name: string }.'],
    ['choice', { tree: '' }, 'Accepted: integer | { name: string, below: …[] } | { only: … }.'],
    ['choice', { list: [1] }, 'At least 2 entries.'],
    ['choice', { step: 4 }, 'A multiple of 5 is required.'],
    ['choice', { most: 5 }, 'Less than 5.'],
  ])('%s %j says the rule', async (method, params, ...expected) => {
    expect(await messages(method, params)).toEqual(expected)
  })

  it('goes with the code of a missing value, also where several shapes are accepted', async () => {
    const sent = call('cell_grant_create', { cell_id: uuid, level: 'viewer' })
    const reply = await rpc(test.url, sent, { cookie: admin.cookie })
    expect(dataOf(reply)?.issues).toEqual([
      { path: ['principal'], code: 'invalid_type', message: shapes.principal },
    ])
  })

  it('is not what a schema makes of the input, because that may repeat it', async () => {
    expect(await messages('choice', { said: 424242 })).toEqual(['A string is required.'])
  })

  it('says the rule on routes too', async () => {
    const reply = await send(test.url, {
      method: 'POST',
      path: '/api/account/signup',
      body: { username: 'a b c', password: 'short' },
    })
    expect(reply.json).toEqual({
      error: 'invalid_request_body',
      issues: [
        {
          path: ['username'],
          code: 'invalid_format',
          message:
            'Letters a to z, digits, _ and - are accepted, beginning with a letter and ending with a letter or digit.',
        },
        { path: ['password'], code: 'too_small', message: 'At least 12 characters.' },
      ],
    })
  })
})

describe('an unknown method', () => {
  const said = async (method: string, url = test.url) =>
    ((await rpc(url, call(method))).json as { error: { message: string } }).error.message
  const plain = 'There is no such method.'

  it('is told of one that is spelt alike', async () => {
    expect(await said('cel_get')).toBe('There is no such method; did you mean cell_get?')
    expect(await said('choise')).toBe('There is no such method; did you mean choice?')
  })

  it('is told no more than that otherwise, and nothing where methods are not published', async () => {
    expect([await said('nothing_like_it'), await said('c'.repeat(10_000))]).toEqual([plain, plain])
    const off = await testService({ openrpc: 'off' })
    expect(await said('cel_get', off.url)).toBe(plain)
    await off.close()
  })

  it('of a feature that is off is answered like any other', async () => {
    const off = await testService({ app_settings: false })
    const [unwired, random] = [
      await rpc(off.url, call('app_settings_get')),
      await rpc(off.url, call('zz_unknown_method')),
    ]
    expect(unwired.text).toBe(random.text)
    await off.close()
  })
})

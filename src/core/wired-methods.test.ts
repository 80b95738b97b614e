import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { resolveOptions } from '../config/config.ts'
import { createService } from '../create-service.ts'
import { StartError } from '../errors.ts'
import { createRegistry } from '../registry/registry.ts'
import { mutation, query } from './declare.ts'
import type { Method } from './method.ts'
import { wireMethods } from './wired-methods.ts'

const registry = createRegistry({
  roles: [{ name: 'editor', grant_paths: ['admin'] }],
  scope_kinds: [{ name: 'shelf' }, { name: 'room' }],
})

/** A declaration as in a config file, which no compiler has checked. */
const declared = (change: Record<string, unknown> = {}): Method =>
  ({
    ...query({
      doc: 'x',
      auth: { account: 'required', actor: 'required' },
      output: z.null(),
      handler: async () => null,
    }),
    ...change,
  }) as Method
const withAuth = (auth: unknown) => declared({ auth })
const required = { account: 'required', actor: 'required' }
const grain = { account: 'required', actor: 'none' }
const open = { account: 'none', actor: 'none' }
const withActing = z.strictObject({ acting: z.string().optional() })

const { config } = resolveOptions({})

function problem(table: Record<string, Method>): StartError | undefined {
  try {
    wireMethods(table, registry, config)
  } catch (error) {
    if (error instanceof StartError) return error
    throw error
  }
}

const broken: [rule: string, action: Method, names: RegExp][] = [
  ['declares acting without an axis', declared({ auth: grain, input: withActing }), /acting/],
  ['declares acting beside an axis', declared({ input: withActing }), /acting/],
  [
    'roles without an actor',
    withAuth({ ...grain, roles: ['admin'] }),
    /auth\.roles needs auth\.actor "required"/,
  ],
  [
    'roles with an optional actor',
    withAuth({ account: 'required', actor: 'optional', roles: ['admin'] }),
    /roles need/,
  ],
  ['no roles', withAuth({ ...required, roles: [] }), /roles must not be empty/],
  ['an unregistered role', withAuth({ ...required, roles: ['admin', 'boss'] }), /"boss" is not registered/],
  ['no credential types', withAuth({ ...grain, credential_types: [] }), /credential_types must not be empty/],
  [
    'an unregistered credential type',
    withAuth({ ...grain, credential_types: ['password'] }),
    /"password" is not registered/,
  ],
  ['an actor without an account', withAuth({ account: 'none', actor: 'optional' }), /actor axis/],
  [
    'an actor required, the account optional',
    withAuth({ account: 'optional', actor: 'required' }),
    /needs auth\.account "required"/,
  ],
  ['public with roles', withAuth({ account: 'none', actor: 'required', roles: ['admin'] }), /actor axis/],
  ['public with credential types', withAuth({ ...open, credential_types: ['session'] }), /public/],
  ['public with a scope', withAuth({ ...open, required_scope: 'area:name' }), /public/],
  ['an empty scope', withAuth({ ...grain, required_scope: '' }), /required_scope/],
  ['a scope without a colon', withAuth({ ...grain, required_scope: 'area' }), /required_scope "area"/],
  ['a scope in capitals', withAuth({ ...grain, required_scope: 'Area:x' }), /required_scope/],
  ['a scope with a line break', withAuth({ ...grain, required_scope: 'area:x\n' }), /required_scope/],
  ['a scope of a method', withAuth({ ...grain, required_scope: 'rpc:other' }), /rpc:/],
  ['a scope of a surface', withAuth({ ...grain, required_scope: 'surface:verify' }), /surface:/],
  ['fresh for every credential', withAuth({ ...grain, fresh: true }), /fresh needs credential_types/],
  [
    'fresh for tokens',
    withAuth({ ...grain, fresh: true, credential_types: ['session', 'api_token'] }),
    /fresh needs credential_types/,
  ],
  [
    'fresh that is not true',
    withAuth({ ...grain, fresh: false, credential_types: ['session'] }),
    /auth\.fresh must be true or left out/,
  ],
  ['an exemption that is no boolean', declared({ before_enrolment: 1 }), /before_enrolment must be true/],
  ['a scope that is no text', withAuth({ ...grain, required_scope: 1 }), /required_scope/],
  [
    'a limit per account with an optional one',
    declared({ auth: { account: 'optional', actor: 'none' }, rate_limit: 'account' }),
    /rate_limit "account" needs auth\.account "required"/,
  ],
  ['both limits without an account', declared({ auth: open, rate_limit: 'both' }), /rate_limit "both"/],
  ['a group without a limit', declared({ rate_limit_group: 'group' }), /rate_limit_group needs rate_limit/],
  ['an input that ignores keys', declared({ input: z.object({ a: z.string() }) }), /strict/],
  ['an input that keeps keys', declared({ input: z.looseObject({}) }), /strict/],
  ['an input that may be null', declared({ input: z.strictObject({}).nullable() }), /strict/],
  ['an input that is no object', declared({ input: z.string() }), /strict/],
  ['no input schema', declared({ input: undefined }), /strict/],
  ['a misspelled axis', withAuth({ account: 'require', actor: 'none' }), /auth\.account must be one of/],
  ['a missing axis', withAuth({ account: 'required' }), /auth\.actor must be one of/],
  ['a misspelled guard', withAuth({ ...required, role: ['admin'] }), /auth\.role is unknown/],
  ['roles that are no list', withAuth({ ...required, roles: 'admin' }), /auth\.roles must be a list/],
  ['no axes at all', withAuth(undefined), /auth must be an object that says account and actor/],
  ['an unknown limit', declared({ rate_limit: 'acount' }), /rate_limit must be one of/],
  ['side effects without a transaction', declared({ side_effects: true }), /mutation\(\)/],
  ['a transaction without side effects', declared({ event: 'login' }), /query\(\)/],
  ['side effects that are no boolean', declared({ side_effects: 'no' }), /side_effects/],
  ['a handler that is not a function', declared({ handler: 'x' }), /handler/],
  [
    'an unknown key',
    declared({ rate_limits: 'account' }),
    /"rate_limits" is unknown; did you mean rate_limit\?/,
  ],
  [
    'a key of the declaration, given after it was made',
    declared({ errors: ['cell_not_found'] }),
    /"errors" was added to the result of query\(\) or mutation\(\)/,
  ],
  ['a misspelled handler', declared({ handler: undefined, handlr: 1 }), /did you mean handler\?/],
  ['no output', declared({ output: undefined }), /output must be a zod schema/],
  ['an output that is no schema', declared({ output: { ok: true } }), /output must be a zod schema/],
  ['no doc', declared({ description: undefined }), /doc must be a text/],
  ['reasons that are no list', declared({ error_reasons: 'cell_not_found' }), /errors must be a list/],
  [
    'a reason that does not exist',
    declared({ error_reasons: ['cell_not_fond'] }),
    /reason "cell_not_fond" does not exist; did you mean cell_not_found\?/,
  ],
  ['a reason that is no text', declared({ error_reasons: [null] }), /reason "null" does not exist/],
  ['a refine that is no function', declared({ refine: 1 }), /refine must be a function/],
  [
    'a refine that is async',
    declared({ refine: async () => ({}) }),
    /refine must be a function that is not async/,
  ],
  [
    'enabled that is async',
    declared({ enabled: async () => false }),
    /enabled must be a function that is not/,
  ],
  [
    'enabled that is not answered',
    declared({ enabled: () => undefined }),
    /enabled must return true or false/,
  ],
  ['enabled that is no function', declared({ enabled: true }), /enabled must be a function/],
  ['a snapshot that is no boolean', declared({ snapshot: 'yes' }), /snapshot must be true or false/],
  ['a role that is nearly one', withAuth({ ...required, roles: ['editr'] }), /did you mean editor\?/],
  ['a role that is no name', withAuth({ ...required, roles: [7] }), /a role must be a name, or an object/],
  [
    'a role without in',
    withAuth({ ...required, roles: [{ role: 'editor' }] }),
    /`in` of a role must be a function/,
  ],
  [
    'a scoped role with an unknown key',
    withAuth({ ...required, roles: [{ role: 'editor', inn: () => null, in: () => null }] }),
    /a role has the unknown key "inn"; did you mean in\?/,
  ],
  [
    'a scoped role that is not registered',
    withAuth({ ...required, roles: [{ role: 'boss', in: () => null }] }),
    /"boss" is not registered/,
  ],
  [
    'a scoped role that takes no scope',
    withAuth({ ...required, roles: [{ role: 'admin', in: () => null }] }),
    /"admin" applies to no kind of scope/,
  ],
  [
    'a scoped role that leaves the kind open',
    withAuth({ ...required, roles: [{ role: 'editor', in: () => null }] }),
    /several kinds of scope\. Set scope_kind to one of shelf, room/,
  ],
  [
    'a scoped role of another kind',
    withAuth({ ...required, roles: [{ role: 'editor', scope_kind: 'shelv', in: () => null }] }),
    /scope_kind "shelv"; did you mean shelf\?/,
  ],
  ['a declaration that is null', null as unknown as Method, /declare it/],
  ['a plain object', { doc: 'x' } as unknown as Method, /declare it with query\(\) or mutation\(\)/],
]

describe('a broken declaration stops the start, and the message names method and rule', () => {
  it.each(broken)('%s', (_rule, action, names) => {
    expect(problem({ my_method: action })).toMatchObject({
      reason: 'invalid_action',
      exitCode: 78,
      message: expect.stringMatching(/^Action my_method: /),
    })
    expect(problem({ my_method: action })?.message).toMatch(names)
  })

  it.each(['rpc.discover', 'rpc.x', 'rpc.', 'a\u0000', '\ud800'])('the method name %j', (method) => {
    const table = Object.fromEntries([[method, declared()]])
    expect(problem(table)?.message).toMatch(/^Action .*name/s)
  })
})

describe('a start is refused for', () => {
  const base = { database_url: 'postgres://nobody@127.0.0.1:1/none', cookie_keys: ['k'.repeat(43)] }
  const start = (options: object) => createService({ ...base, ...options })

  it('a declaration in the options, before the database is touched', async () => {
    await expect(start({ actions: { mine: withAuth({ ...grain, roles: ['admin'] }) } })).rejects.toThrow(
      /^Action mine: auth\.roles needs/,
    )
  })

  it('a key that query() does not know, under the name of the method', async () => {
    const spec = {
      doc: 'x',
      auth: { role: 'admin', role_s: 1 } as never,
      output: z.null(),
      handler: async () => null,
    }
    await expect(start({ actions: { mine: query(spec) } })).rejects.toThrow(
      /^Action mine: auth\.role is unknown; did you mean roles\?/,
    )
    const limited = query({ ...spec, auth: { role: 'admin' }, ...{ rate_limits: 'account' } })
    await expect(start({ actions: { mine: limited } })).rejects.toThrow(
      /^Action mine: "rate_limits" is unknown; did you mean rate_limit\? A declaration may have doc, auth, /,
    )
  })

  it('a method with the name of a built-in one', async () => {
    await expect(start({ actions: { cell_get: declared() } })).rejects.toThrow(/cell_get.*Rename/s)
  })

  it.each([
    ['two mounts on one path', { rpc_path: '/api/ws' }, /ws_path/],
    ['a mount on a route', { rpc_path: '/api/account/login' }, /rpc_path/],
    ['a mount on a fixed path', { rpc_path: '/health' }, /rpc_path/],
    [
      'an account mount whose route is a mount',
      { account_path: '/api', rpc_path: '/api/status' },
      /rpc_path/,
    ],
  ])('%s', async (_what, options, names) => {
    await expect(start(options)).rejects.toThrow(names)
  })
})

describe('what a declaration may say', () => {
  it('its own scope, roles, limits and any credential type', () => {
    expect(
      problem({
        a: withAuth({ ...required, roles: ['editor', 'admin'], required_scope: 'reports:read.all2' }),
        b: withAuth({ ...grain, credential_types: ['session', 'api_token', 'daemon_token'] }),
        c: declared({ auth: open, rate_limit: 'ip', rate_limit_group: 'shared' }),
        d: declared({ rate_limit: 'both' }),
        'area.verb': mutation({
          doc: 'x',
          auth: { account: 'required', actor: 'optional' },
          event: 'cell_update',
          output: z.null(),
          handler: async () => null,
        }) as Method,
      }),
    ).toBeUndefined()
  })

  it('rules across its fields, which stay beside the added acting', () => {
    const input = z.strictObject({ a: z.int(), b: z.int() }).refine(({ a, b }) => a < b)
    const { params } = wireMethods({ ordered: declared({ input }) }, registry, config).get('ordered') ?? {}
    const acting = '11111111-1111-1111-1111-111111111111'
    expect(params?.safeParse({ a: 1, b: 2, acting }).success).toBe(true)
    expect(params?.safeParse({ a: 2, b: 1, acting }).success).toBe(false)
    expect(params?.safeParse({ a: 1, b: 2, acting: 'x' }).success).toBe(false)
    expect(params?.safeParse({ a: 1, b: 2, c: 3 }).success).toBe(false)
  })

  it('nothing about its handler, and then it does not exist', () => {
    const wired = wireMethods(
      { planned: declared({ handler: undefined }), there: declared() },
      registry,
      config,
    )
    expect([...wired.keys()]).toEqual(['there'])
  })
})

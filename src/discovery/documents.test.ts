import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv, type ValidateFunction } from 'ajv'
import formats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { examplesFile, recordExamples } from '../../scripts/record-examples.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, dataOf, type Reply, reasonOf, rpc, send } from '../../test/helpers/http.ts'
import { mailIsDown } from '../../test/helpers/mailed.ts'
import { providerIsDown } from '../../test/helpers/oidc.ts'
import { onLocalhost } from '../../test/helpers/passkeys.ts'
import { query } from '../core/declare.ts'
import { notifications } from '../notifications.ts'
import { routeList } from '../routes.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

// Their types do not declare what they export.
const require = createRequire(import.meta.url)
const { jsonSchema } = require('@json-schema-tools/meta-schema')
const { openrpcDocument } = require('@open-rpc/meta-schema')

type Descriptor = { name: string; required?: boolean; schema: object }
type Method = {
  name: string
  summary: string
  description: string
  paramStructure: string
  params: Descriptor[]
  result: Descriptor
  errors: { $ref: string }[]
  examples?: { params: { name: string; value: unknown }[]; result: { value: unknown } }[]
  'x-auth': { account: string; actor: string; roles?: (string | { role: string })[] }
  'x-side-effects': boolean
  'x-error-reasons': string[]
}
type OpenRpc = {
  openrpc: string
  info: { title: string }
  methods: Method[]
  components: { schemas: Record<string, object>; errors: Record<string, { code: number; data: object }> }
  'x-notifications': { name: string; params: object }[]
}
type Media = { content?: { 'application/json': { schema: object; example?: unknown } } }
type OpenApi = {
  paths: Record<
    string,
    Record<string, { requestBody?: Media; responses: Record<string, Media>; 'x-rate-limit': unknown }>
  >
  components: { schemas: Record<string, object> }
}

const nameOf = (asked: string | { role: string }): string => (typeof asked === 'string' ? asked : asked.role)

let test: TestService
let account: TestAccount
let openRpc: OpenRpc
let openApi: OpenApi
beforeAll(async () => {
  test = await testService({
    app_settings: true,
    self_service_roles: [],
    username_change: 'self',
    ...mailIsDown,
    ...onLocalhost,
    ...providerIsDown,
    bootstrap: 'live',
    bootstrap_token_path: '/nowhere/token',
    roles: [{ name: 'editor', grant_paths: ['admin'] }],
    scope_kinds: [{ name: 'workspace' }],
    reasons: { page_locked: { status: 409, message: 'Somebody else edits the page.' } },
    notifications: { page_changed: z.strictObject({ page_id: z.string() }) },
    actions: {
      wiki_page_lock: query({
        doc: 'Who has locked a page.',
        auth: {
          account: 'required',
          actor: 'required',
          roles: [
            {
              role: 'editor',
              scope_kind: 'workspace',
              in: ({ workspace_id }: { workspace_id: string }) => workspace_id,
            },
          ],
        },
        input: z.strictObject({ workspace_id: z.string() }),
        output: z.object({}),
        errors: ['page_locked'],
        handler: async () => ({}),
      }),
      wiki_page_count: query({
        doc: 'How many pages there are.',
        auth: { account: 'none', actor: 'none' },
        input: z.strictObject({ kind: z.string().optional() }),
        output: z.object({ count: z.int() }),
        handler: async () => ({ count: 0 }),
      }),
    },
  })
  account = await test.account({ roles: ['admin', 'keeper'] })
  openRpc = (await get()).json as OpenRpc
  openApi = (await get('/api/openapi.json')).json as OpenApi
})
afterAll(() => test.close())

const get = (path = '/api/openrpc.json', headers = {}): Promise<Reply> => send(test.url, { path, headers })
const discover = (url = test.url) => rpc(url, call('rpc.discover'))

/** Checks a value against a schema of the document, following references; returns the faults, or undefined. */
function fits(document: { components: { schemas: Record<string, object> } }) {
  const ajv = new Ajv({ strict: false, allErrors: true })
  formats.default(ajv)
  return (schema: object, value: unknown): string | undefined => {
    const check: ValidateFunction = ajv.compile({ ...schema, components: document.components })
    return check(value) ? undefined : ajv.errorsText(check.errors)
  }
}

describe('the OpenRPC document', () => {
  it('is valid by the official schema, which notices what is missing', () => {
    const ajv = new Ajv({ strict: false })
    formats.default(ajv)
    const { $schema: _, ...meta } = jsonSchema
    for (const $id of ['https://meta.json-schema.tools', 'https://meta.json-schema.tools/'])
      ajv.addSchema({ ...meta, $id })
    const { $schema: __, ...schema } = openrpcDocument
    const isValid = ajv.compile(schema)
    expect([isValid(openRpc), isValid.errors]).toEqual([true, null])
    const { params: _params, ...broken } = openRpc.methods[0] as Method
    expect(isValid({ ...openRpc, methods: [broken] })).toBe(false)
    const wrongly = { ...openRpc.methods[0], params: [{ name: 'x', schema: { type: 'strnig' } }] }
    expect(isValid({ ...openRpc, methods: [wrongly] })).toBe(false)
  })

  it('lists exactly the wired methods, sorted by name, with a schema for everything', () => {
    expect(openRpc).toMatchObject({ openrpc: '1.3.2', info: { title: 'Cellkeep' } })
    expect(openRpc.methods.map(({ name }) => name)).toEqual([...test.service.app.actions.keys()].sort())
    expect(openRpc.methods.map(({ name }) => name)).toContain('wiki_page_count')
    for (const { name, params, result, paramStructure, summary } of openRpc.methods) {
      const wired = test.service.app.actions.get(name)?.params as z.ZodObject
      expect([name, params.map((one) => one.name)]).toEqual([name, Object.keys(wired.shape)])
      for (const { schema } of [...params, result]) expect(schema).toBeTypeOf('object')
      expect([paramStructure, summary]).toEqual(['by-name', expect.stringMatching(/\.$/)])
    }
    const notified = openRpc['x-notifications'].map(({ name }) => name)
    expect(notified).toEqual([...Object.keys(notifications), 'page_changed'])
    expect(openRpc.components.schemas).toHaveProperty('AuditEvent')
  })

  it('describes what a consumer declares: reasons, notifications, roles in a scope', () => {
    const lock = openRpc.methods.find(({ name }) => name === 'wiki_page_lock')
    expect(lock?.['x-auth'].roles).toEqual([{ role: 'editor', scope_kind: 'workspace' }])
    expect(lock?.errors).toContainEqual({ $ref: '#/components/errors/page_locked' })
    expect(openRpc.components.errors.page_locked).toEqual({
      code: -32004,
      message: 'Somebody else edits the page.',
      data: { reason: 'page_locked' },
    })
    expect(openRpc['x-notifications'].at(-1)).toMatchObject({
      name: 'page_changed',
      params: { properties: { page_id: { type: 'string' } } },
    })
  })

  it('refers to the shapes of a consumer by name: those with an id, and those that hold themselves', async () => {
    const Tree = z.object({
      name: z.string(),
      get children() {
        return z.array(Tree)
      },
    })
    const common = { doc: 'x', auth: { account: 'none', actor: 'none' } } as const
    const handler = async () => ({ name: '', children: [] })
    await using own = await testService({
      actions: {
        as_input: query({ ...common, input: z.strictObject({ tree: Tree }), output: z.unknown(), handler }),
        as_output: query({ ...common, output: Tree, handler }),
        named: query({
          ...common,
          input: z.strictObject({ cell: z.string().meta({ id: 'Cell' }) }).meta({ id: 'Lookup' }),
          output: z.number().meta({ id: 'constructor' }),
          handler: async () => 1,
        }),
      },
    })
    const { methods, components } = (await send(own.url, { path: '/api/openrpc.json' })).json as OpenRpc
    const [as_input, as_output, third] = ['as_input', 'as_output', 'named'].map((name) =>
      methods.find((method) => method.name === name),
    )
    const $ref = '#/components/schemas/Shape'
    const properties = { name: { type: 'string' }, children: { type: 'array', items: { $ref } } }
    expect(as_input?.params[0]?.schema).toEqual({ $ref })
    expect(components.schemas.Shape).toMatchObject({ properties })
    expect(third?.params[0]?.schema).toEqual({ $ref: '#/components/schemas/Cell2' })
    expect(third?.result.schema).toEqual({ $ref: '#/components/schemas/constructor' })
    expect(Object.entries(components.schemas)).toContainEqual(['constructor', { type: 'number' }])
    const isTree = (value: unknown) => fits({ components })(as_output?.result.schema ?? {}, value)
    expect(isTree({ name: 'a', children: [{ name: 'b', children: [] }] })).toBeUndefined()
    expect(isTree({ name: 'a', children: [{ name: 'b' }] })).toMatch(/children/)
  })

  it('that cannot be made for a schema of a consumer names its method in the log', async () => {
    const { log, lines } = capturedLog()
    const twice = z.strictObject({ a: z.string().meta({ id: 'Twice' }), b: z.int().meta({ id: 'Twice' }) })
    const common = { doc: 'x', auth: { account: 'none', actor: 'none' } } as const
    const mine = query({ ...common, input: twice, output: z.null(), handler: async () => null })
    await using own = await testService({ actions: { mine }, log })
    expect((await send(own.url, { path: '/api/openrpc.json' })).status).toBe(500)
    const failed = lines().find(({ event }) => event === 'request_failed')
    expect(failed).toMatchObject({ err: { message: expect.stringMatching(/^The schemas of mine .*Twice/) } })
  })

  it('resolves every reference', () => {
    const refs = [...JSON.stringify(openRpc).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)]
    expect(refs.length).toBeGreaterThan(100)
    for (const [, kind, name] of refs)
      expect(openRpc.components[kind as 'schemas']).toHaveProperty(name as string)
    expect(JSON.stringify(openRpc).match(/"\$ref":"(?!#\/components\/)/)).toBeNull()
  })

  it('says of every method what the server does', async () => {
    const notEmpty = { zz_unknown: 1 }
    for (const { name, ...method } of openRpc.methods) {
      const anonymous = await rpc(test.url, call(name, notEmpty))
      const known = await rpc(test.url, call(name, notEmpty), { cookie: account.cookie })
      const isRequired = method['x-auth'].account === 'required'
      expect([name, anonymous.status === 401]).toEqual([name, isRequired])
      const viaGet = await get(`/api/rpc?method=${name}&id=1&params=[]`)
      const isRefused = dataOf(viaGet)?.detail === 'get_not_allowed'
      expect([name, isRefused]).toEqual([name, method['x-side-effects']])
      for (const reply of [anonymous, known])
        expect([name, method['x-error-reasons']]).toEqual([name, expect.arrayContaining([reasonOf(reply)])])
      const { roles } = method['x-auth']
      if (roles) {
        const plain = await test.account()
        const refused = await rpc(test.url, call(name), { cookie: plain.cookie })
        if (reasonOf(refused) !== 'credential_type_required')
          expect(dataOf(refused)).toEqual({
            reason: 'insufficient_permissions',
            required_roles: roles.map(nameOf),
          })
      }
    }
  })

  it('has an example of every built-in method that fits its schemas, recorded from this code', async () => {
    const check = fits(openRpc)
    for (const { name, params, result, examples } of openRpc.methods) {
      if (name === 'rpc.discover' || name.startsWith('wiki_')) continue
      const [example] = examples ?? []
      expect([name, example], 'call it in scripts/record-examples.ts, then npm run examples:record').toEqual([
        name,
        expect.anything(),
      ])
      for (const { name: key, value } of example?.params ?? []) {
        const described = params.find((one) => one.name === key)
        expect([name, key, check(described?.schema as object, value)]).toEqual([name, key, undefined])
      }
      expect([name, check(result.schema, example?.result.value)]).toEqual([name, undefined])
    }
    // Stale: npm run examples:record
    expect(await recordExamples()).toBe(await readFile(examplesFile, 'utf8'))
  })

  it('tells nothing of the configuration, the machine or the accounts', async () => {
    const documents = (await get()).text + (await get('/api/openapi.json')).text
    const text = documents.replace(/https:\/\/(id|app)\.example/g, '')
    expect(text).not.toMatch(/https?:|localhost|127\.0\.0\.1|CELLKEEP_|\/nowhere|\d{3,}\/\d{3}/)
    expect(text).not.toContain(account.id)
  })
})

describe('the documents', () => {
  it('are the same bytes for every caller, by HTTP, by the method and in process', async () => {
    const { text } = await get()
    expect((await get('/api/openrpc.json', { cookie: account.cookie })).text).toBe(text)
    expect((await discover()).text).toBe(`{"jsonrpc":"2.0","id":1,"result":${text}}`)
    expect(JSON.stringify(await test.service.call('rpc.discover'))).toBe(text)
  })

  it.each(['/api/openrpc.json', '/api/openapi.json'])('%s is revalidated by its ETag', async (path) => {
    const { headers, text } = await get(path)
    expect(headers).toMatchObject({ 'cache-control': 'no-cache', etag: expect.stringMatching(/^"[\w-]+"$/) })
    for (const sent of [headers.etag, `W/${headers.etag}`, `"other", ${headers.etag}`, '*']) {
      const reply = await get(path, { 'if-none-match': sent })
      expect([reply.status, reply.text, reply.headers.etag]).toEqual([304, '', headers.etag])
      expect(reply.headers).not.toHaveProperty('content-length')
    }
    expect((await get(path, { 'if-none-match': '"other"' })).status).toBe(200)
    const head = await send(test.url, { method: 'HEAD', path })
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers['content-length']).toBe(String(Buffer.byteLength(text)))
    expect((await send(test.url, { method: 'POST', path })).headers.allow).toBe('GET, HEAD')
    expect((await get(`${path}?x=1`)).json).toMatchObject({ error: 'invalid_query_params' })
  })

  it('have patterns that the regular expressions of other languages read too', () => {
    const patterns = JSON.stringify([openRpc, openApi]).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)
    const sources = [...new Set([...patterns].map(([, text = '']) => JSON.parse(text) as string))]
    expect(sources.length).toBeGreaterThan(5)
    // Unicode classes, code points, named groups and lookaround are missing or written differently in some languages.
    expect(sources.filter((source) => /\\[pPuk]|\(\?(?!:)/.test(source))).toEqual([])
  })

  it('share one limiter per address', async () => {
    const limited = await testService({ limit_discovery: '3/900' })
    for (const path of ['/api/openrpc.json', '/api/openapi.json'])
      expect((await send(limited.url, { path })).status).toBe(200)
    expect((await discover(limited.url)).status).toBe(200)
    expect(reasonOf(await discover(limited.url))).toBe('rate_limited')
    const refused = await send(limited.url, { path: '/api/openrpc.json' })
    expect([refused.status, refused.json]).toEqual([
      429,
      { error: 'rate_limit_exceeded', retry_after: expect.any(Number) },
    ])
    await limited.close()
  })

  it('are not there when switched off', async () => {
    const off = await testService({ openrpc: 'off' })
    for (const path of ['/api/openrpc.json', '/api/openapi.json'])
      expect((await send(off.url, { path })).status).toBe(404)
    const nothing = await rpc(off.url, call('rpc.anything_else'))
    expect((await discover(off.url)).text).toBe(nothing.text)
    expect(reasonOf(nothing)).toBe('method_not_found')
    await off.close()
  })

  it('cannot be replaced by a method of the same name', async () => {
    const actions = { 'rpc.discover': test.service.app.actions.get('wiki_page_count') }
    await expect(testService({ actions } as never)).rejects.toMatchObject({ reason: 'invalid_action' })
  })
})

describe('the OpenAPI document', () => {
  it('names what every route refuses', async () => {
    const key = { 'idempotency-key': 'x'.repeat(16), origin: 'http://localhost:5173' }
    for (const headers of [key, { ...key, origin: 'https://evil.example', cookie: account.cookie }])
      for (const [path, methods] of Object.entries(openApi.paths))
        for (const [method, { responses }] of Object.entries(methods)) {
          const { status, json } = await send(test.url, { method: method.toUpperCase(), path, headers })
          const schema = responses[status]?.content?.['application/json'].schema ?? {}
          expect([path, status, fits(openApi)(schema, json)]).toEqual([
            path,
            headers === key ? 400 : 403,
            undefined,
          ])
        }
  })

  it('is valid by the official schema', async () => {
    const validator = new Validator()
    expect(await validator.validate(openApi)).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    expect(await new Validator().validate({ ...openApi, paths: 1 })).toMatchObject({ valid: false })
  })

  it('has exactly the routes that are on, each with an example that fits', async () => {
    const wired = routeList.filter(({ enabled }) => !enabled || enabled(test.service.app))
    expect(Object.keys(openApi.paths)).toEqual(wired.map(({ path }) => `/api/account${path}`))
    const check = fits(openApi)
    for (const { method, path, input, output } of wired) {
      const described = openApi.paths[`/api/account${path}`]?.[method.toLowerCase()]
      const body = described?.requestBody?.content?.['application/json']
      const result = described?.responses[200]?.content?.['application/json']
      expect([path, body !== undefined, result !== undefined]).toEqual([
        path,
        input !== undefined,
        output !== undefined,
      ])
      for (const media of [body, result])
        if (media) expect([path, check(media.schema, media.example)]).toEqual([path, undefined])
    }
    const closed = await testService({ signup: false })
    const { paths } = (await send(closed.url, { path: '/api/openapi.json' })).json as OpenApi
    expect(paths).not.toHaveProperty('/api/account/signup')
    await closed.close()
  })
})

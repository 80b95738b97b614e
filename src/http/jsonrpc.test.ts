import { describe, expect, it } from 'vitest'
import { call, rpc, send } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

const test = await serviceForFile({ limit_cell_create: '49/900' })
const ada = await test.account()

type Answer = { id: unknown; result?: unknown; error?: { code: number; data: Record<string, unknown> } }
const refused = (detail: string, id: unknown = null) => ({
  jsonrpc: '2.0',
  id,
  error: {
    code: -32600,
    message: 'The request is not a valid JSON-RPC 2.0 call.',
    data: { reason: 'invalid_request', detail },
  },
})
const get = (query: string, headers = {}) => send(test.url, { path: `/api/rpc?${query}`, headers })
const reasonsOf = (json: unknown) => (json as Answer[]).map(({ error }) => error?.data.reason ?? 'ok')

describe('text that is no call', () => {
  const notJson = [
    '',
    ' ',
    '{',
    '{}}',
    'nul',
    "{'a':1}",
    '{"a":1,}',
    '\ufeff',
    'NaN',
    '\u00a0{}',
    '[',
    '{"a":\u0001}',
  ]
  it.each(notJson)('%j is a parse error', async (text) => {
    const { status, json } = await rpc(test.url, text)
    expect([status, json]).toEqual([
      400,
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32700, message: 'The body is not valid JSON.', data: { reason: 'parse_error' } },
      },
    ])
  })

  it('bytes that are not UTF-8 are a parse error, also inside a string', async () => {
    for (const bytes of ['ff', 'c0af', 'eda080', 'f8888080']) {
      const body = Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":"'), Buffer.from(bytes, 'hex')])
      const response = await fetch(`${test.url}/api/rpc`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: Buffer.concat([body, Buffer.from('","method":"cell_list"}')]),
      })
      expect(await response.json()).toMatchObject({ id: null, error: { code: -32700 } })
    }
  })

  it('one leading byte order mark is tolerated', async () => {
    expect((await rpc(test.url, `\ufeff${JSON.stringify(call('cell_list'))}`)).status).toBe(200)
    const params = encodeURIComponent('\ufeff{"limit":1}')
    const path = `/api/rpc?method=cell_list&id=1&params=${params}`
    expect((await send(test.url, { path })).status).toBe(200)
  })

  it('JSON nested deeper than 100 levels is too deep, unclosed brackets are no JSON', async () => {
    const nested = (levels: number) =>
      `{"jsonrpc":"2.0","id":1,"method":"cell_list","params":{"x":${'['.repeat(levels - 2)}${']'.repeat(levels - 2)}}}`
    expect((await rpc(test.url, nested(100))).json).toMatchObject({ error: { code: -32602 } })
    expect((await rpc(test.url, nested(101))).json).toEqual(refused('too_deep', 1))
    expect((await rpc(test.url, nested(30_000))).json).toEqual(refused('too_deep', 1))
    expect((await rpc(test.url, `[${nested(100)}]`)).json).toEqual(refused('too_deep'))
    expect((await rpc(test.url, '['.repeat(60_000))).json).toMatchObject({ error: { code: -32700 } })
  })
})

describe('an envelope', () => {
  const rest = '"id":7,"method":"cell_list"'
  const table: [text: string, detail: string, id: unknown][] = [
    ['null', 'not_an_object', null],
    ['1', 'not_an_object', null],
    ['"call"', 'not_an_object', null],
    ['true', 'not_an_object', null],
    [`{${rest}}`, 'version', 7],
    [`{"jsonrpc":2,${rest}}`, 'version', 7],
    [`{"jsonrpc":"1.0",${rest}}`, 'version', 7],
    [`{"jsonrpc":"2.0 ",${rest}}`, 'version', 7],
    [`{"jsonrpc":null,${rest}}`, 'version', 7],
    [`{"__proto__":{"jsonrpc":"2.0"},${rest}}`, 'version', 7],
    ['{"jsonrpc":"1.0","id":null}', 'version', null],
    ['{"jsonrpc":"2.0","method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":null,"method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":false,"method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":{},"method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":[1],"method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":1e400,"method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":9007199254740992,"method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":9007199254740993,"method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":-9007199254740992,"method":"cell_list"}', 'id', null],
    ['{"jsonrpc":"2.0","id":null}', 'id', null],
    ['{"jsonrpc":"2.0","id":7}', 'method', 7],
    ['{"jsonrpc":"2.0","id":7,"method":null}', 'method', 7],
    ['{"jsonrpc":"2.0","id":7,"method":["cell_list"]}', 'method', 7],
    ['{"jsonrpc":"2.0","id":7,"method":1,"params":1}', 'method', 7],
    [`{"jsonrpc":"2.0",${rest},"params":null}`, 'params', 7],
    [`{"jsonrpc":"2.0",${rest},"params":[]}`, 'params', 7],
    [`{"jsonrpc":"2.0",${rest},"params":"{}"}`, 'params', 7],
    [`{"jsonrpc":"2.0",${rest},"params":0}`, 'params', 7],
    [`{"jsonrpc":"2.0",${rest},"params":{},"params":false}`, 'params', 7],
  ]
  it.each(table)('%s is refused alike alone and in a batch', async (text, detail, id) => {
    const alone = await rpc(test.url, text)
    expect([alone.status, alone.json]).toEqual([400, refused(detail, id)])
    const batch = await rpc(test.url, `[${text}]`)
    expect([batch.status, batch.json]).toEqual([200, [refused(detail, id)]])
  })

  it.each([
    '""',
    '"a"',
    '"\\ud800"',
    '0',
    '-0',
    '1.5',
    '-7',
    '1e3',
    '9007199254740991',
    '"9007199254740993"',
  ])('the id %s comes back with its type, on a result and on an error', async (id) => {
    for (const method of ['cell_list', 'nothing']) {
      const { json } = await rpc(test.url, `{"jsonrpc":"2.0","id":${id},"method":"${method}"}`)
      expect((json as Answer).id).toEqual(JSON.parse(id) === 0 ? 0 : JSON.parse(id))
    }
  })

  it('other keys are ignored and the last of a double key counts', async () => {
    const text = `{"jsonrpc":"1.0","x":1,"result":{},"method":"nothing","method":"cell_list","id":1,"jsonrpc":"2.0"}`
    expect((await rpc(test.url, text)).json).toMatchObject({ id: 1, result: { cells: [] } })
  })

  it('an answer has exactly one of result and error, and nothing else', async () => {
    const replies = (await rpc(test.url, [call('cell_list'), call('nothing')])).json as object[]
    expect(replies.map((reply) => Object.keys(reply))).toEqual([
      ['jsonrpc', 'id', 'result'],
      ['jsonrpc', 'id', 'error'],
    ])
  })
})

describe('GET', () => {
  const table: [query: string, status: number, reply: object][] = [
    ['id=1', 400, refused('missing_method')],
    ['method=&id=1', 400, refused('missing_method')],
    ['', 400, refused('missing_method')],
    ['Method=cell_list&id=1', 400, refused('missing_method')],
    ['method=cell_list', 400, refused('missing_id')],
    ['method=cell_list&id=', 400, refused('missing_id')],
    ['id=1&id=2', 400, refused('missing_method')],
    ['method=cell_list&method=x&id=1', 400, refused('duplicate_query_key', 1)],
    ['method=cell_list&id=1&params=&params=', 400, refused('duplicate_query_key', 1)],
    ['method=cell_list&id=1&id=1', 400, refused('duplicate_query_key')],
    ['method=cell_create&id=x', 400, refused('get_not_allowed', 'x')],
    ['method=cell_create&id=1&params=[', 400, refused('get_not_allowed', 1)],
    [`method=cell_list&id=1&params=${'['.repeat(101)}${']'.repeat(101)}`, 400, { error: { code: -32602 } }],
    [`method=cell_list&id=1&params={"x":${'['.repeat(100)}${']'.repeat(100)}}`, 400, refused('too_deep', 1)],
    ['method=nothing&id=1', 404, { id: 1, error: { code: -32601, data: { reason: 'method_not_found' } } }],
    ['method=cell_list&id=1&id2=x&x=1&x=2', 200, { id: 1, result: { cells: [] } }],
    ['method=cell_list&id=1&params=', 200, { result: { cells: [] } }],
    ['method=cell_list&id=1&params=null', 200, { result: { cells: [] } }],
    ['method=cell_list&id=1&params={}', 200, { result: { cells: [] } }],
    ['method=cell_list&id=1&params=%7B%22limit%22%3A1%7D', 200, { result: { cells: [] } }],
    ['%6dethod=cell%5Flist&id=1', 200, { result: { cells: [] } }],
  ]
  it.each(table)('?%s gets %i', async (query, status, reply) => {
    const { status: given, json } = await get(query)
    expect(given).toBe(status)
    expect(json).toMatchObject(reply)
  })

  it.each([
    ['[]', 'invalid_type'],
    ['1', 'invalid_type'],
    ['"x"', 'invalid_type'],
    ['{', 'invalid_format'],
    ['{"limit":1', 'invalid_format'],
    ['%00', 'invalid_format'],
  ])('params %s are refused at the root, and only after the guards', async (params, code) => {
    const issues = [{ path: [], code, message: 'A JSON object is required, URL-encoded.' }]
    expect((await get(`method=cell_list&id=1&params=${params}`)).json).toMatchObject({
      error: { code: -32602, data: { reason: 'invalid_params', issues } },
    })
    expect((await get(`method=account_verify&id=1&params=${params}`)).status).toBe(401)
  })

  it.each([
    ['42', 42],
    ['0', 0],
    ['-5', -5],
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', '9007199254740993'],
    ['1.5', '1.5'],
    ['007', '007'],
    ['1e3', '1e3'],
    ['-0', '-0'],
    ['0x10', '0x10'],
    ['Infinity', 'Infinity'],
    ['%2B1', '+1'],
    ['1+1', '1 1'],
    ['true', 'true'],
  ])('the id %s becomes %j', async (text, id) => {
    expect((await get(`method=cell_list&id=${text}`)).json).toMatchObject({ id })
  })

  it('answers like POST, whoever asks', async () => {
    const headers = { cookie: ada.cookie }
    for (const sent of [{}, headers]) {
      const post = await rpc(test.url, call('account_verify'), sent)
      expect(await get('method=account_verify&id=1', sent)).toMatchObject({
        status: post.status,
        json: post.json,
      })
    }
  })
})

describe('a batch', () => {
  it('is refused whole when empty or longer than 50', async () => {
    expect(await rpc(test.url, [])).toMatchObject({ status: 400, json: refused('empty_batch') })
    const many = Array.from({ length: 51 }, (_, id) => call('cell_list', {}, id))
    expect(await rpc(test.url, many)).toMatchObject({ status: 400, json: refused('batch_too_large') })
    const { status, json } = await rpc(test.url, many.slice(1))
    expect([status, (json as Answer[]).map(({ id }) => id)]).toEqual([200, many.slice(1).map(({ id }) => id)])
  })

  it('answers every entry at its place, also those that are no calls', async () => {
    const entries = [
      call('cell_list', {}, 'same'),
      { jsonrpc: '2.0', method: 'cell_list' },
      [call('cell_list')],
      call('nothing', {}, 'same'),
      call('account_verify', { x: 1 }, 2.5),
      null,
      call('cell_list', {}, 'same'),
    ]
    const { status, json } = await rpc(test.url, entries)
    expect(status).toBe(200)
    expect(json).toMatchObject([
      { id: 'same', result: {} },
      refused('id'),
      refused('not_an_object'),
      { id: 'same', error: { code: -32601 } },
      { id: 2.5, error: { code: -32001 } },
      refused('not_an_object'),
      { id: 'same', result: {} },
    ])
  })

  it('of notifications only answers each with a refusal', async () => {
    const notification = { jsonrpc: '2.0', method: 'cell_list' }
    expect((await rpc(test.url, [notification, notification])).json).toEqual([refused('id'), refused('id')])
  })

  it('reads the credential anew for every entry', async () => {
    const bob = await test.account()
    const entries = ['account_verify', 'account_session_revoke_all', 'account_verify', 'account_session_list']
    const { status, json } = await rpc(
      test.url,
      entries.map((method) => call(method)),
      { cookie: bob.cookie },
    )
    expect(status).toBe(200)
    expect(reasonsOf(json)).toEqual(['ok', 'ok', 'authentication_required', 'authentication_required'])
  })

  it('charges every entry, and answers the surplus with 429 data but no header', async () => {
    const bob = await test.account()
    const headers = { cookie: bob.cookie }
    const create = (count: number) =>
      rpc(
        test.url,
        Array.from({ length: count }, () => call('cell_create', { data: {} })),
        headers,
      )
    expect((await create(51)).status).toBe(400)
    const reply = await create(50)
    expect([reply.status, reply.headers['retry-after']]).toEqual([200, undefined])
    expect(reasonsOf(reply.json)).toEqual([...Array(49).fill('ok'), 'rate_limited'])
    const last = (reply.json as Answer[]).at(-1)
    expect(last?.error).toMatchObject({ code: -32006, data: { retry_after: expect.any(Number) } })
    const alone = await rpc(test.url, call('cell_create', { data: {} }), headers)
    expect(alone.status).toBe(429)
    expect((alone.json as Answer).error?.data.retry_after).toBe(Number(alone.headers['retry-after']))
  })
})

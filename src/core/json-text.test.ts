import { expect, test as it } from 'vitest'
import { z } from 'zod'
import { call, rpc } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { query } from './declare.ts'

let text = ''
let pieces: unknown[] = []
const actions = {
  pieced: query({
    doc: 'Answers the pieces that the test says.',
    auth: { account: 'none', actor: 'none' },
    output: z.object({ a: z.string() }),
    json_text: true,
    handler: async () => pieces as string[],
  }),
  told: query({
    doc: 'Answers the text that the test says.',
    auth: { account: 'none', actor: 'none' },
    output: z.object({ a: z.int() }),
    json_text: true,
    handler: async (_input, { db }) =>
      (await db.one<{ text: string }>(sql`select ${text}::text as text`)).text,
  }),
}
const test = await serviceForFile({ actions })
const ada = await test.account()

it('a text is sent as it is, alone, in a batch and over a WebSocket, and is a value in process', async () => {
  text = '{"a" :   1}'
  const sent = `{"jsonrpc":"2.0","id":1,"result":${text}}`
  const post = async (body: unknown) => (await rpc(test.url, body)).text
  expect(await post(call('told'))).toBe(sent)
  expect(await post([call('told'), call('told')])).toBe(`[${sent},${sent}]`)
  expect(await test.service.call('told' as string)).toEqual({ a: 1 })
  const socket = await openSocket(test.url, { cookie: ada.cookie })
  expect(await socket.call('told')).toMatchObject({ result: { a: 1 } })
  socket.ws.close()
})

it.each([
  ['one', [1]],
  ['short ones', [3, 5]],
  ['ones that are written each by itself', [3000, 1, 2000]],
  ['ones that are written as fast as the client reads', [200_000, 150_000]],
])('a text in pieces, %s, gives the same answer as the whole', async (_which, lengths) => {
  const contents = lengths.map((length) => 'aé😀'.repeat(length))
  pieces = ['{"a":"', ...contents, '"}']
  const whole = `{"jsonrpc":"2.0","id":1,"result":${pieces.join('')}}`
  const answer = await rpc(test.url, call('pieced'))
  expect(answer.text === whole).toBe(true)
  expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(whole)))
  expect((await rpc(test.url, [call('pieced'), call('pieced')])).text === `[${whole},${whole}]`).toBe(true)
  const value = { a: contents.join('') }
  expect(await test.service.call('pieced' as string)).toEqual(value)
  const socket = await openSocket(test.url, { cookie: ada.cookie })
  expect((await socket.call('pieced')).result).toEqual(value)
  socket.ws.close()
  pieces = [pieces.join('')]
  expect((await rpc(test.url, call('pieced'))).text === whole).toBe(true)
})

it('a text that breaks the output is an internal error in development', async () => {
  for (const broken of ['{"a":"1"}', '[]', '{"a":1'] as const) {
    text = broken
    expect(await reasonOf(test.service.call('told' as string))).toBe('internal_error')
  }
})

it('any character and number of a cell is the same in a list as alone', async () => {
  const all = String.fromCharCode(...Array.from({ length: 0x2030 }, (_, at) => at + 1))
  const data = {
    [`key "\\ ${all}`]: `${all}😀`,
    numbers: [0, -1.5, 1e21, 5e-324, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER, 0.1],
    nested: [{}, [], null, true, { a: { b: '' } }],
  }
  const root = await test.account({ roles: ['admin'] })
  const kind = 'a "kind"\n\\ \u2028 😀'
  await root.client.cell_create({ data, kind, path: `"\\/\t ${kind}`, visibility: 'public' })
  await root.client.cell_create({ data: {} })
  const { cells } = await root.client.cell_list({ visibility: 'public' })
  expect(cells).toMatchObject([{ data, kind }])
  for (const cell of (await root.client.cell_list()).cells)
    expect((await root.client.cell_get({ id: cell.id })).cell).toEqual(cell)
})

it('a piece that is no text, such as the null of a database, fails its call alone', async () => {
  pieces = ['{"a":"', null, '"}']
  text = '{"a":1}'
  const { status, json } = await rpc(test.url, [call('told'), call('pieced'), call('told')])
  expect(status).toBe(200)
  expect(json).toMatchObject([
    { result: { a: 1 } },
    { error: { data: { reason: 'internal_error' } } },
    { result: { a: 1 } },
  ])
})

import fc from 'fast-check'
import { describe, expect, test as it } from 'vitest'
import { rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { CellData } from '../registry/hooks.ts'
import { parseJson } from '../wire/parse-json.ts'
import { checkData, compactBytes, Data, DataPatch, sameJson } from './data.ts'

// Shrinking a failure creates more cells than an account may, and would end in that refusal.
const test = await serviceForFile({ limit_cell_create: 'off' })
const ada = await test.account()

/** Data nested this deep; the data object itself is level 1. */
const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
/** Data of this many bytes as compact JSON, of text with `width` bytes per character. */
const sized = (bytes: number, text = 'x'): string => {
  const room = bytes - '{"a":""}'.length
  const width = Buffer.byteLength(text)
  return `{"a":"${'y'.repeat(room % width)}${text.repeat(Math.floor(room / width))}"}`
}
const tiny = (count: number): string => `{"a":[${Array(count).fill('5e-324').join(',')}]}`

type Answer = {
  result?: { cell: { id: string; data: CellData } }
  error?: { data: { reason: string; issues?: { path: string[]; code: string }[] } }
}
const post = async (method: string, params: string): Promise<Answer> =>
  parseJson(
    (
      await rpc(test.url, `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`, {
        cookie: ada.cookie,
      })
    ).text,
  ) as Answer
/** The outcome of data sent as this text: `ok`, the reason, or the issues as `path code`. */
const outcome = ({ error }: Answer): string =>
  error
    ? (error.data.issues?.map(({ path, code }) => `${path.join('.')} ${code}`).join() ?? error.data.reason)
    : 'ok'
const create = (data: string) => post('cell_create', `{"data":${data}}`)

describe('data sent to cell_create', () => {
  it.each([
    ['an empty object', '{}', 'ok'],
    ['an array', '[]', 'data invalid_type'],
    ['null', 'null', 'data invalid_type'],
    ['a string', '"x"', 'data invalid_type'],
    ['262144 bytes', sized(262_144), 'ok'],
    ['262145 bytes', sized(262_145), 'data too_big'],
    ['262144 bytes of 4-byte characters', sized(262_144, '😀'), 'ok'],
    ['262145 bytes of 4-byte characters', sized(262_145, '😀'), 'data too_big'],
    [
      '262144 bytes after white space and escapes are gone',
      ` ${sized(262_144).replace('x', '\\u0078')} `,
      'ok',
    ],
    ['depth 64', nested(64), 'ok'],
    ['depth 65', nested(65), 'data too_big'],
    ['depth 64 with a scalar inside', nested(64).replace('[]', '[1]'), 'ok'],
    ['100 000 nested arrays', nested(100_001), 'invalid_request'],
    ['a number past the doubles', '{"a":1e400}', 'data invalid_type'],
    ['a negative one, deep inside', '{"a":[{"b":-1e400}]}', 'data invalid_type'],
    ['30 000 numbers that are long without exponent', tiny(30_000), 'data too_big'],
    ['a label of 1024 characters', JSON.stringify({ label: '😀'.repeat(1024) }), 'ok'],
    ['a label of 1025 characters', JSON.stringify({ label: 'x'.repeat(1025) }), 'data.label too_big'],
    ['an empty label', '{"label":""}', 'ok'],
    ['a summary of 8192 characters', JSON.stringify({ summary: '😀'.repeat(8192) }), 'ok'],
    ['a summary of 8193 characters', JSON.stringify({ summary: 'x'.repeat(8193) }), 'data.summary too_big'],
    ['a null label', '{"label":null}', 'data.label invalid_type'],
    ['a null summary', '{"summary":null}', 'data.summary invalid_type'],
    [
      'a label that is no string',
      '{"label":1,"summary":[]}',
      'data.label invalid_type,data.summary invalid_type',
    ],
    ['a label of any type below the top level', '{"a":{"label":1,"summary":null}}', 'ok'],
    ['a top-level kind', '{"kind":"x"}', 'cell_kind_in_data'],
    ['a top-level kind of null', '{"kind":null}', 'cell_kind_in_data'],
    ['a kind below the top level', '{"nested":{"kind":"x"}}', 'ok'],
    ['a NUL in a string', '{"a":"\\u0000"}', 'data.a invalid_format'],
    ['a lone surrogate in the label', '{"label":"\\ud800"}', 'data.label invalid_format'],
    ['a NUL in a nested key', '{"a":[{"b\\u0000":1}]}', 'data.a.0.b\ufffd invalid_format'],
  ])('%s', async (_what, data, expected) => {
    expect(outcome(await create(data))).toBe(expected)
  })

  it('needs the key', async () => {
    expect(outcome(await post('cell_create', '{}'))).toBe('data invalid_type')
  })

  it('keeps ordinary keys that are special in JavaScript, and touches no prototype', async () => {
    const data =
      '{"__proto__":{"a":1},"constructor":1,"toString":null,"":[{"__proto__":null}],"prototype":{}}'
    const { result } = await create(data)
    const id = result?.cell.id as string
    // Compared as text, because a matcher would follow the prototype.
    const keys = (value: object): string => JSON.stringify(Object.entries(value).sort())
    const wanted = keys(JSON.parse(data))
    expect(keys(result?.cell.data as object)).toBe(wanted)
    expect(keys((await post('cell_get', `{"id":"${id}"}`)).result?.cell.data as object)).toBe(wanted)

    const patched = await post('cell_update', `{"cell_id":"${id}","data_patch":{"__proto__":{"polluted":1}}}`)
    expect(keys(patched.result?.cell.data as object)).toBe(
      keys(JSON.parse(data.replace('{"a":1}', '{"a":1,"polluted":1}'))),
    )
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    const cleared = await post('cell_update', `{"cell_id":"${id}","data_patch":{"__proto__":null}}`)
    expect(Object.hasOwn(cleared.result?.cell.data as object, '__proto__')).toBe(false)
  })

  it('comes back equal, whatever JSON object it is', async () => {
    const depth = fc.jsonValue({ maxDepth: 4 })
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), depth, { noNullPrototype: true }), async (data) => {
        fc.pre(
          !Object.hasOwn(data, 'kind') && !Object.hasOwn(data, 'label') && !Object.hasOwn(data, 'summary'),
        )
        fc.pre(!JSON.stringify(data).includes('\\u0000'))
        const sent = JSON.stringify(data)
        const { result } = await create(sent)
        expect(sameJson(result?.cell.data, parseJson(sent))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('keeps every key, whatever others have sent before', async () => {
    await create('{"of others":1,"\\\\":2}')
    for (const key of ['\n', '"', '/', '\u0001']) {
      const sent = JSON.stringify({ 'of others': 1, [key]: 2 })
      const { result } = await create(sent)
      expect(Object.keys(result?.cell.data ?? {}).sort()).toEqual(['of others', key].sort())
      const read = await post('cell_get', JSON.stringify({ id: result?.cell.id }))
      expect(Object.keys(read.result?.cell.data ?? {}).sort()).toEqual(['of others', key].sort())
    }
  })
})

describe('a data patch', () => {
  const patch = async (stored: string, sent: string) => {
    const { result } = await create(stored)
    return await post('cell_update', `{"cell_id":"${result?.cell.id}","data_patch":${sent}}`)
  }
  it.each([
    ['a null label, which removes it', '{"label":"x"}', '{"label":null,"summary":null}', 'ok'],
    ['an array', '{}', '[]', 'data_patch invalid_type'],
    ['a kind', '{}', '{"kind":null}', 'cell_kind_in_data'],
    ['a label that is too long', '{}', `{"label":"${'x'.repeat(1025)}"}`, 'data_patch.label too_big'],
    ['more than 262144 bytes by itself', '{}', sized(262_145), 'data_patch too_big'],
    ['more than 262144 bytes only when merged', '{"b":1}', sized(262_144), 'data_patch too_big'],
    ['as much as fits beside what it takes away', '{"b":1}', sized(262_135).replace('{', '{"b":null,'), 'ok'],
    ['depth 65 by itself', '{}', nested(65), 'data_patch too_big'],
    ['depth 64 beside what is there', '{"b":[]}', nested(64), 'ok'],
    [
      'numbers that are long without exponent, up to 524288 bytes',
      tiny(1000),
      tiny(590).replace('a', 'b'),
      'ok',
    ],
    ['too many of these', tiny(1000), tiny(600).replace('a', 'b'), 'data_patch too_big'],
    ['a number past the doubles', '{}', '{"a":1e400}', 'data_patch invalid_type'],
  ])('%s', async (_what, stored, sent, expected) => {
    expect(outcome(await patch(stored, sent))).toBe(expected)
  })
})

it('the text form that the size rule calculates is the one of the database', async () => {
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.constantFrom(
      5e-324,
      -5e-324,
      1.7976931348623157e308,
      1e21,
      -1e21,
      1.5e-7,
      1e-6,
      123456789012345680000,
      -0,
    ),
  )
  const data = fc.array(fc.dictionary(fc.string({ maxLength: 3 }), fc.array(number, { maxLength: 5 })), {
    maxLength: 4,
  })
  for (const value of fc.sample(data, 200)) {
    const text = JSON.stringify({ a: value })
    fc.pre(!text.includes('\\u0000'))
    const row = await test.service.app.db.first<{ bytes: number }>(
      sql`select octet_length(${text}::jsonb::text) as bytes`,
    )
    // Filled to the limit it passes, and one byte more is refused.
    const filled = (bytes: number) => ({ a: value, f: [...Array(1500).fill(5e-324), 'x'.repeat(bytes)] })
    const fixed = (row?.bytes as number) + ', "f": []'.length + 1500 * 328 + 2
    expect(checkData(filled(524_288 - fixed))).toBeUndefined()
    expect(checkData(filled(524_288 - fixed + 1))).toBe('too_big')
  }
})

it('schemas pass on the same object, and data of any size is checked without recursion', () => {
  const data = JSON.parse('{"__proto__":{"a":1},"b":[1]}')
  expect(Data.parse(data)).toBe(data)
  expect(DataPatch.parse(data)).toBe(data)
  let deep: unknown = 1
  for (let i = 0; i < 200_000; i++) deep = [deep]
  expect(checkData({ deep })).toBe('too_big')
  expect(compactBytes({ a: '😀' })).toBe('{"a":""}'.length + 4)
})

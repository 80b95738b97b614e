import fc from 'fast-check'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { toIssues } from './issues.ts'
import { CursorText, Int, Limit, Text, Timestamp, Uuid } from './types.ts'

/** The parsed value, or the codes of its issues. */
function result(schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value)
  return parsed.success ? parsed.data : { codes: toIssues(parsed.error).map(({ code }) => code) }
}
const refused = (...codes: string[]) => ({ codes })

describe('Uuid', () => {
  test('takes any version and variant and becomes lower case', () => {
    const ones = '11111111-1111-1111-1111-111111111111'
    expect(result(Uuid, ones)).toBe(ones)
    expect(result(Uuid, 'FFFFFFFF-ABCD-0EF0-F123-456789ABCDEF')).toBe('ffffffff-abcd-0ef0-f123-456789abcdef')
    expect(result(Uuid, '00000000-0000-0000-0000-000000000000')).toBe('00000000-0000-0000-0000-000000000000')
  })

  test.each([
    '',
    '11111111111111111111111111111111',
    '{11111111-1111-1111-1111-111111111111}',
    ' 11111111-1111-1111-1111-111111111111',
    '11111111-1111-1111-1111-111111111111\n',
    '11111111-1111-1111-1111-11111111111g',
    '11111111-1111-1111-1111-1111111111111',
    '１1111111-1111-1111-1111-111111111111',
  ])('refuses %j as invalid_format', (text) => {
    expect(result(Uuid, text)).toEqual(refused('invalid_format'))
  })

  test('another type is invalid_type', () => {
    expect(result(Uuid, null)).toEqual(refused('invalid_type'))
    expect(result(Uuid, 1)).toEqual(refused('invalid_type'))
  })
})

describe('Timestamp', () => {
  test.each([
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.000Z'],
    ['2026-01-02T03:04:05.6Z', '2026-01-02T03:04:05.600Z'],
    ['2026-01-02T03:04:05.678999999999Z', '2026-01-02T03:04:05.678Z'],
    ['2026-01-02T03:04:05.678+02:30', '2026-01-02T00:34:05.678Z'],
    ['2026-01-02T03:04:05-23:59', '2026-01-03T03:03:05.000Z'],
    ['2026-01-02T03:04:05-00:00', '2026-01-02T03:04:05.000Z'],
    ['2026-01-02t03:04:05z', '2026-01-02T03:04:05.000Z'],
    ['2024-02-29T23:59:59.999Z', '2024-02-29T23:59:59.999Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['0000-12-31T23:30:00-01:00', '0001-01-01T00:30:00.000Z'],
    ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s becomes %s', (input, output) => {
    expect(result(Timestamp, input)).toBe(output)
  })

  test.each([
    '',
    'tomorrow',
    '2026-01-02',
    '2026-01-02T03:04:05',
    '2026-01-02T03:04Z',
    '2026-01-02 03:04:05Z',
    '2026-01-02T03:04:05+0200',
    '2026-01-02T03:04:05+24:00',
    '2026-01-02T03:04:05+02:60',
    '2026-01-02T03:04:05.Z',
    '2026-01-02T03:04:05,5Z',
    '2026-02-30T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-02T24:00:00Z',
    '2026-01-02T03:60:05Z',
    '2026-01-02T03:04:60Z',
    '0000-06-01T00:00:00Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '+02026-01-02T03:04:05Z',
    ' 2026-01-02T03:04:05Z',
    '2026-01-02T03:04:05Z\n',
    '٢٠٢٦-01-02T03:04:05Z',
  ])('refuses %j as invalid_format', (input) => {
    expect(result(Timestamp, input)).toEqual(refused('invalid_format'))
  })

  test('every moment keeps its millisecond, whatever the offset it is written with', () => {
    const from = Date.UTC(1000, 0, 2)
    const to = Date.UTC(9999, 11, 30)
    fc.assert(
      fc.property(fc.integer({ min: from, max: to }), fc.integer({ min: -1439, max: 1439 }), (ms, offset) => {
        const local = new Date(ms + offset * 60_000).toISOString().slice(0, -1)
        const size = Math.abs(offset)
        const hours = String(Math.floor(size / 60)).padStart(2, '0')
        const minutes = String(size % 60).padStart(2, '0')
        const written = `${local}${offset < 0 ? '-' : '+'}${hours}:${minutes}`
        expect(result(Timestamp, written)).toBe(new Date(ms).toISOString())
      }),
    )
  })

  test('its output is accepted and unchanged', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
        (date) => {
          expect(result(Timestamp, date.toISOString())).toBe(date.toISOString())
        },
      ),
    )
  })
})

describe('Int', () => {
  const schema = Int(-5, 200)
  test.each([-5, 0, 200])('takes %d', (value) => expect(result(schema, value)).toBe(value))
  test.each([
    ['1.5', 'invalid_type'],
    ['1e400', 'invalid_type'],
    ['-1e400', 'invalid_type'],
    ['"7"', 'invalid_type'],
    ['null', 'invalid_type'],
    ['true', 'invalid_type'],
    ['-6', 'too_small'],
    ['201', 'too_big'],
    ['9007199254740993', 'too_big'],
    ['-9007199254740993', 'too_small'],
  ])('JSON %s gives the one issue %s', (json, code) => {
    expect(result(schema, JSON.parse(json))).toEqual(refused(code))
  })

  test('an integer past ±(2^53−1) is refused even where the bounds would allow it', () => {
    expect(result(Int(0, Number.MAX_VALUE), JSON.parse('9007199254740993'))).toEqual(refused('too_big'))
  })
})

test('Text counts UTF-16 units and may be empty', () => {
  expect(result(Text(4), '')).toBe('')
  expect(result(Text(4), '😀😀')).toBe('😀😀')
  expect(result(Text(4), '😀😀a')).toEqual(refused('too_big'))
  expect(result(Text(4), 'abcde')).toEqual(refused('too_big'))
  expect(result(Text(4).min(1), '')).toEqual(refused('too_small'))
  expect(z.toJSONSchema(Text(4).min(1))).toMatchObject({ minLength: 1, maxLength: 4 })
})

describe('pages', () => {
  const Page = z.strictObject({ limit: Limit(200, 50), cursor: CursorText })

  test('absent and null limit are the default, absent and null cursor the first page', () => {
    expect(Page.parse({})).toEqual({ limit: 50 })
    expect(Page.parse({ limit: null, cursor: null })).toEqual({ limit: 50, cursor: null })
    expect(Page.parse({ limit: 200, cursor: 'aZ09_-' })).toEqual({ limit: 200, cursor: 'aZ09_-' })
  })

  test.each([
    [0, 'too_small'],
    [201, 'too_big'],
    [1.5, 'invalid_type'],
    ['10', 'invalid_type'],
    [false, 'invalid_type'],
  ])('limit %j gives %s', (limit, code) => {
    expect(result(Page, { limit })).toEqual(refused(code))
  })

  test.each([['', 'a'.repeat(513), 'a.b', 'a=', 'ä', 'a\n', 'a b', 5, false, {}, ['a']]].flat())(
    'cursor %j gives the same issue as every other bad one',
    (cursor) => {
      const { error } = Page.safeParse({ cursor })
      expect(error && toIssues(error)).toEqual([
        { path: ['cursor'], code: 'invalid_cursor', message: expect.any(String) },
      ])
    },
  )

  test('512 characters pass', () => {
    expect(result(CursorText, 'a'.repeat(512))).toBe('a'.repeat(512))
  })

  test('clients and handlers see plain types, discovery a plain JSON schema', () => {
    expectTypeOf<z.input<typeof Page>>().toEqualTypeOf<{ limit?: number | null; cursor?: string | null }>()
    expectTypeOf<z.output<typeof Page>>().toEqualTypeOf<{ limit: number; cursor?: string | null }>()
    const schema = z.toJSONSchema(z.strictObject({ page: Page, at: Timestamp, id: Uuid }), { io: 'input' })
    expect(schema).toMatchObject({
      properties: {
        page: { properties: { cursor: { type: ['string', 'null'] } } },
        at: { type: 'string', format: 'date-time' },
        id: { type: 'string', format: 'uuid' },
      },
    })
  })
})

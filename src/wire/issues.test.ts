import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import { tooDeep } from '../http/jsonrpc.ts'
import { badText, type IssuePath, issue, mayHoldBadText, toIssues } from './issues.ts'
import { parseJson } from './parse-json.ts'
import { withRules } from './rules.ts'

const prototypeBefore = JSON.stringify(Object.getOwnPropertyNames(Object.prototype))
afterEach(() => {
  expect(JSON.stringify(Object.getOwnPropertyNames(Object.prototype))).toBe(prototypeBefore)
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
})

/** The path and code of every issue of the JSON text. */
function issuesOf(schema: z.ZodType, json: string): [IssuePath, string][] {
  const { error } = schema.safeParse(JSON.parse(json), withRules)
  return error ? toIssues(error).map(({ path, code }) => [path, code]) : []
}

describe('toIssues', () => {
  const inner = z.strictObject({ n: z.int().min(1).max(9).optional(), s: z.string().max(3).optional() })
  const schema = z.strictObject({
    a: inner.optional(),
    list: z.array(inner).max(2).optional(),
    kind: z.enum(['x', 'y']).optional(),
    must: z.string().optional(),
    step: z.int().multipleOf(5).optional(),
    map: z.record(z.string().regex(/^[a-z]+$/), z.int()).optional(),
    either: z.union([z.strictObject({ p: z.string() }), z.strictObject({ q: z.int() })]).optional(),
    arm: z
      .discriminatedUnion('kind', [
        z.strictObject({ kind: z.literal('full') }),
        z.strictObject({ kind: z.literal('ttl'), days: z.int() }),
      ])
      .optional(),
  })

  test.each<[string, IssuePath, string]>([
    ['null', [], 'invalid_type'],
    ['[]', [], 'invalid_type'],
    ['{"must":1}', ['must'], 'invalid_type'],
    ['{"must":null}', ['must'], 'invalid_type'],
    ['{"a":{"n":0}}', ['a', 'n'], 'too_small'],
    ['{"a":{"n":10}}', ['a', 'n'], 'too_big'],
    ['{"a":{"n":1.5}}', ['a', 'n'], 'invalid_type'],
    ['{"list":[{},{"s":"long"}]}', ['list', 1, 's'], 'too_big'],
    ['{"list":[{},{},{}]}', ['list'], 'too_big'],
    ['{"kind":"z"}', ['kind'], 'invalid_value'],
    ['{"kind":5}', ['kind'], 'invalid_type'],
    ['{"kind":null}', ['kind'], 'invalid_type'],
    ['{"step":4}', ['step'], 'invalid_value'],
    ['{"map":{"A":1}}', ['map', 'A'], 'invalid_format'],
    ['{"map":{"a":"1"}}', ['map', 'a'], 'invalid_type'],
    ['{"either":{"p":1}}', ['either'], 'invalid_union'],
    ['{"either":null}', ['either'], 'invalid_type'],
    ['{"either":5}', ['either'], 'invalid_type'],
    ['{"either":[]}', ['either'], 'invalid_type'],
    ['{"arm":{"kind":"none"}}', ['arm', 'kind'], 'invalid_union'],
    ['{"arm":{"kind":null}}', ['arm', 'kind'], 'invalid_type'],
    ['{"arm":{"kind":["full"]}}', ['arm', 'kind'], 'invalid_type'],
    ['{"arm":5}', ['arm'], 'invalid_type'],
    ['{"arm":{"kind":"ttl"}}', ['arm', 'days'], 'invalid_type'],
    ['{"arm":{"kind":"full","days":1}}', ['arm', 'days'], 'unrecognized_keys'],
    ['{"other":1,"another":2}', ['other'], 'unrecognized_keys'],
    ['{"a":{"other":1}}', ['a', 'other'], 'unrecognized_keys'],
  ])('%s gives one issue at %j: %s', (json, path, code) => {
    expect(issuesOf(schema, json)).toEqual([[path, code]])
  })

  test('a missing key is invalid_type', () => {
    const { either, arm } = schema.shape
    for (const must of [z.string(), z.enum(['x', 'y']), z.literal('x'), z.literal(true), either.unwrap()])
      expect(issuesOf(z.strictObject({ must }), '{}')).toEqual([[['must'], 'invalid_type']])
    expect(issuesOf(arm, '{}')).toEqual([[['kind'], 'invalid_type']])
  })

  test.each<[string, IssuePath]>([
    ['{"__proto__":{"polluted":1}}', ['__proto__']],
    ['{"__proto__":null}', ['__proto__']],
    ['{"a":{"__proto__":{"polluted":1}}}', ['a', '__proto__']],
    ['{"list":[{},{"__proto__":1}]}', ['list', 1, '__proto__']],
    ['{"arm":{"kind":"full","__proto__":1}}', ['arm', '__proto__']],
    ['{"either":{"p":"x","__proto__":1}}', ['either', '__proto__']],
    ['{"constructor":1}', ['constructor']],
    ['{"a":{"toString":1}}', ['a', 'toString']],
    ['{"a":{"hasOwnProperty":1}}', ['a', 'hasOwnProperty']],
  ])('%s is an unknown key', (json, path) => {
    expect(issuesOf(schema, json)).toEqual([[path, 'unrecognized_keys']])
  })

  test('an empty strict object refuses __proto__ too', () => {
    expect(issuesOf(z.strictObject({}), '{"__proto__":1}')).toEqual([[['__proto__'], 'unrecognized_keys']])
  })

  test('an unknown key is cut at 64 characters, and never between the halves of a pair', () => {
    const json = JSON.stringify({ ['k'.repeat(5000)]: 1 })
    expect(issuesOf(schema, json)).toEqual([[['k'.repeat(64)], 'unrecognized_keys']])
    expect(issuesOf(schema, JSON.stringify({ [`${'k'.repeat(63)}😀`]: 1 }))).toEqual([
      [[`${'k'.repeat(63)}\ufffd`], 'unrecognized_keys'],
    ])
  })

  test('at most 20 issues', () => {
    const { error } = z.array(z.string()).safeParse(Array(500).fill(1))
    expect(error && toIssues(error)).toHaveLength(20)
  })

  test('a custom issue has the message of its schema, or the issue code that it names', () => {
    const own = z.string().refine(() => false, 'No dots here.')
    const kind = z.string().refine(() => false, { message: 'x', params: { code: 'unknown_scope_kind' } })
    const foreign = z.string().refine(() => false, { message: 'Own.', params: { code: 'toString' } })
    const { error } = z.tuple([own, kind, foreign]).safeParse(['a', 'b', 'c'])
    expect(error && toIssues(error)).toEqual([
      { path: [0], code: 'custom', message: 'No dots here.' },
      { path: [1], code: 'unknown_scope_kind', message: issue([], 'unknown_scope_kind').message },
      { path: [2], code: 'custom', message: 'Own.' },
    ])
  })

  test('the message says the rule and repeats nothing that was sent', () => {
    const said = z.string({ error: (found) => `got ${String(found.input)}` })
    const { error } = z
      .strictObject({ must: said, list: schema.shape.list })
      .safeParse({ must: 424242, secret_key: 1 })
    const issues = error ? toIssues(error) : []
    expect(issues.map(({ message }) => message)).toEqual([
      'A string is required.',
      issue([], 'unrecognized_keys').message,
    ])
    expect(JSON.stringify(issues)).not.toContain('424242')
  })
})

test('issue cleans the keys of its path', () => {
  expect(issue(['a\0b', '\ud800', 3, 'k'.repeat(100)], 'invalid_format').path).toEqual([
    'a\ufffdb',
    '\ufffd',
    3,
    'k'.repeat(64),
  ])
})

type Tree = string | number | boolean | null | Tree[] | Entries
/** An object as a list of entries, so that keys may repeat, be `__proto__` or contain anything. */
type Entries = { entries: [string, Tree][] }

const text = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc
    .array(fc.constantFrom(0, 0x22, 0x5c, 0x5b, 0x7d, 0x61, 0xd83d, 0xde00, 0xdfff), { maxLength: 6 })
    .map((units) => String.fromCharCode(...units)),
  fc.constantFrom('__proto__', 'constructor', '\\u0000', '\\ud800', 'length', ''),
)
const tree = fc.letrec<{ node: Tree }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('node'), { maxLength: 4 }),
    fc.array(fc.tuple(text, tie('node')), { maxLength: 4 }).map((entries): Tree => ({ entries })),
  ),
})).node

/** The JSON text of a tree; `style` writes strings raw or fully escaped. */
function toJson(node: Tree, style: (value: string) => string): string {
  if (typeof node === 'string') return style(node)
  if (node === null || typeof node !== 'object') return JSON.stringify(node)
  if (Array.isArray(node)) return `[ ${node.map((item) => toJson(item, style)).join(' ,')}]`
  return `{${node.entries.map(([key, value]) => `${style(key)}:\n${toJson(value, style)}`).join(',')}}`
}
const escaped = (value: string): string =>
  `"${Array.from({ length: value.length }, (_, i) => `\\u${value.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
const styles = fc.constantFrom<(value: string) => string>(JSON.stringify, escaped, (value) =>
  escaped(value).replace(/\\u..../g, (code) => `\\u${code.slice(2).toUpperCase()}`),
)

const depthOf = (node: Tree): number => {
  if (node === null || typeof node !== 'object') return 0
  const inner = Array.isArray(node) ? node : node.entries.map(([, value]) => value)
  return 1 + Math.max(0, ...inner.map(depthOf))
}

function naiveBadText(value: unknown): IssuePath | undefined {
  const bad = (s: string) => s.includes('\0') || /\p{Surrogate}/u.test(s)
  if (typeof value === 'string') return bad(value) ? [] : undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const segment = Array.isArray(value) ? Number(key) : key
    if (bad(key)) return [segment]
    const path = naiveBadText(inner)
    if (path) return [segment, ...path]
  }
  return undefined
}

describe('badText', () => {
  test('finds what a plain recursive search finds, and the test on the raw text never misses it', () => {
    let found = 0
    fc.assert(
      fc.property(tree, styles, (node, style) => {
        const json = toJson(node, style)
        const value = parseJson(json)
        const path = badText(value)
        expect(path).toEqual(naiveBadText(value))
        if (path === undefined) return
        found++
        expect(mayHoldBadText(json)).toBe(true)
      }),
      { numRuns: 1000 },
    )
    expect(found).toBeGreaterThan(50)
  })

  test.each<[string, IssuePath]>([
    ['"\\ud800"', []],
    ['"a\\u0000"', []],
    ['{"a":[1,{"b":"\\uDFFF"}]}', ['a', 1, 'b']],
    ['{"ok":"\\ud83d\\ude00","a\\u0000":1}', ['a\0']],
    ['{"__proto__":{"x":"\\u0000"}}', ['__proto__', 'x']],
    ['[["fine"],["\\ude00\\ud83d"]]', [1, 0]],
  ])('%s is found at %j', (json, path) => {
    expect(badText(JSON.parse(json))).toEqual(path)
    expect(mayHoldBadText(json)).toBe(true)
  })

  test('whole pairs, other control characters and the text \\u0000 itself are fine', () => {
    expect(badText(['😀', '\u0001\u007f', '\\u0000', { '\\ud800': 1 }])).toBeUndefined()
  })

  test('ordinary bodies need no walk', () => {
    expect(mayHoldBadText('{"name":"Zoë 😀","text":"line\\nline\\t\\u00e9"}')).toBe(false)
  })

  test('a hundred thousand levels and a cycle do not exhaust the stack', () => {
    const levels = 100_000
    const deep: unknown = JSON.parse(`${'['.repeat(levels)}"\\u0000"${']'.repeat(levels)}`)
    expect(badText(deep)).toHaveLength(levels)
    const cycle: Record<string, unknown> = { a: 'x' }
    cycle.self = cycle
    expect(badText(cycle)).toBeUndefined()
    cycle.z = '\0'
    expect(badText(cycle)).toEqual(['z'])
  })
})

describe('tooDeep', () => {
  test('agrees with the depth of the value', () => {
    fc.assert(
      fc.property(tree, styles, fc.integer({ min: 0, max: 8 }), (node, style, max) => {
        expect(tooDeep(toJson(node, style), max)).toBe(depthOf(node) > max)
      }),
      { numRuns: 1000 },
    )
  })

  test('100 levels pass, 101 do not', () => {
    const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    expect(tooDeep(nested(100), 100)).toBe(false)
    expect(tooDeep(nested(101), 100)).toBe(true)
  })

  test('brackets in strings and behind escaped quotes do not count', () => {
    expect(tooDeep(JSON.stringify({ a: '[{'.repeat(500), '[[["\\': '"[[[' }), 2)).toBe(false)
  })

  test('siblings do not add up', () => {
    expect(tooDeep(`[${'[],'.repeat(1000)}[[]]]`, 3)).toBe(false)
    expect(tooDeep(`[${'[],'.repeat(1000)}[[]]]`, 2)).toBe(true)
  })

  test('a text that is not JSON gets an answer too', () => {
    expect(tooDeep('['.repeat(1_000_000), 100)).toBe(true)
    expect(tooDeep(']'.repeat(1000), 100)).toBe(false)
    expect(tooDeep(`"${'\\'.repeat(1000)}`, 100)).toBe(false)
  })
})

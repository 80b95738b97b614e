import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { diff, isSame, type Json, type JsonObject, merge } from './json.ts'
import { checkData } from './json-check.ts'
import { between } from './position.ts'

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>
const object = fc.dictionary(
  fc.constantFrom('a', 'b', 'c', 'a/b', '~', '__proto__', 'constructor'),
  json,
) as unknown as fc.Arbitrary<JsonObject>
const plain = (value: unknown) => JSON.parse(JSON.stringify(value ?? null))

describe('diff', () => {
  it('is empty for the same value only, whatever the order of keys', () => {
    fc.assert(
      fc.property(object, object, (a, b) => {
        expect(diff(plain(a), plain(b)).length === 0).toBe(isSame(plain(a), plain(b)))
        const turned = Object.fromEntries(Object.entries(plain(a)).toReversed()) as JsonObject
        expect(diff(plain(a), turned)).toEqual([])
      }),
    )
  })

  it('names the place by a JSON pointer', () => {
    expect(diff({ a: { 'b/c': 1, '~': 2 } }, { a: { 'b/c': 3 } })).toEqual([
      { pointer: '/a/b~1c', before: 1, after: 3 },
      { pointer: '/a/~0', before: 2, after: undefined },
    ])
  })
})

describe('merge', () => {
  const never = () => {
    throw new Error('asked')
  }

  it('takes the only side that changed, and asks nothing', () => {
    fc.assert(
      fc.property(object, object, (base, changed) => {
        expect(isSame(merge(plain(base), plain(changed), plain(base), never).merged, plain(changed))).toBe(
          true,
        )
        expect(isSame(merge(plain(base), plain(base), plain(changed), never).merged, plain(changed))).toBe(
          true,
        )
      }),
    )
  })

  it('keeps changes of different keys, and asks where both changed one', () => {
    const base = { title: 'a', meta: { x: 1, y: 1 }, tags: [1] }
    const theirs = { title: 'a', meta: { x: 2, y: 1 }, tags: [1, 2] }
    const mine = { title: 'b', meta: { x: 1, y: 2 }, tags: [1, 3] }
    const { merged, conflicts } = merge(base, theirs, mine, () => 'mine')
    expect(merged).toEqual({ title: 'b', meta: { x: 2, y: 2 }, tags: [1, 3] })
    expect(conflicts).toEqual([{ pointer: '/tags', base: [1], theirs: [1, 2], mine: [1, 3] }])
  })

  it('keeps keys that objects have anyway', () => {
    const mine = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}')
    const { merged } = merge({}, { other: 1 }, mine, never)
    expect(Object.keys(merged as object).sort()).toEqual(['__proto__', 'constructor', 'other'])
  })
})

describe('checkData', () => {
  const problem = (text: string) => {
    const checked = checkData(text)
    return 'problem' in checked ? checked.problem.kind : null
  }
  it('finds what the service refuses, and what would be stored otherwise than typed', () => {
    expect(problem('{"a": [1, 2.5, -3e2, "x,{\\"a\\"", {"a": 1}], "b": {"a": 1}}')).toBeNull()
    expect(problem('{"a": }')).toBe('invalid')
    expect(problem('[]')).toBe('not_object')
    expect(problem('{"kind": "x"}')).toBe('kind_inside')
    expect(problem('{"a": 1, "b": 2, "\\u0061": 3}')).toBe('duplicate_key')
    expect(problem('{"a": 9007199254740993}')).toBe('unsafe_number')
    expect(problem('{"a": 1e999}')).toBe('unsafe_number')
    expect(problem(JSON.stringify({ a: 'x'.repeat(262_137) }))).toBe('too_large')
    expect(problem(JSON.stringify({ a: 'x'.repeat(262_136) }))).toBeNull()
    expect(problem(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`)).toBe('too_deep')
    expect(problem(`${'{"a":'.repeat(64)}1${'}'.repeat(64)}`)).toBeNull()
  })
})

describe('between', () => {
  const position = fc
    .array(fc.constantFrom(...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'), {
      maxLength: 4,
    })
    .chain((head) => fc.constantFrom(...'123AZaz').map((last) => head.join('') + last))
  it('lies between its neighbours in byte order, and never ends in 0', () => {
    fc.assert(
      fc.property(fc.option(position), fc.option(position), (one, other) => {
        const [low, high] = one !== null && other !== null && one > other ? [other, one] : [one, other]
        fc.pre(low === null || high === null || low < high)
        const found = between(low, high)
        if (low !== null) expect(found > low).toBe(true)
        if (high !== null) expect(found < high).toBe(true)
        expect(found.endsWith('0')).toBe(false)
      }),
    )
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { diff, isSame, type Json, type JsonObject, merge } from './json.ts'
import { checkData, placeOf } from './json-check.ts'
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

  it('keeps keys that every object inherits', () => {
    const mine = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}')
    const { merged } = merge({}, { other: 1 }, mine, never)
    expect(Object.keys(merged as object).sort()).toEqual(['__proto__', 'constructor', 'other'])
  })
})

describe('checkData', () => {
  const problem = (text: string) => {
    const checked = checkData(text)
    return 'problems' in checked ? checked.problems[0]?.kind : null
  }
  it('finds what the service refuses, and what would be stored otherwise than typed', () => {
    expect(problem('{"a": [1, 2.5, -3e2, "x,{\\"a\\"", {"a": 1}], "b": {"a": 1}}')).toBeNull()
    expect(problem('{"a": }')).toBe('expected')
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

  it('takes the same texts as JSON.parse, and says where the mistake is', () => {
    const piece = fc.constantFrom(...'{}[]:,"\\ 01.-eE\n\u00a0', '"a"', '"b":', 'null', '\\u00e9', '/')
    const broken = fc.tuple(object, fc.nat(), fc.nat(3), piece).map(([value, at, cut, put]) => {
      const text = JSON.stringify(value, null, at % 2)
      const place = at % (text.length + 1)
      return text.slice(0, place) + put + text.slice(place + cut)
    })
    const isJson = (text: string): boolean => {
      try {
        return JSON.parse(text) !== undefined
      } catch {
        return false
      }
    }
    const texts = fc.oneof(
      broken,
      fc.array(piece).map((all) => all.join('')),
    )
    fc.assert(
      fc.property(texts, (text) => {
        const checked = checkData(text)
        const isTold = 'problems' in checked && checked.problems[0]?.kind === 'expected'
        expect(isTold).toBe(!isJson(text))
      }),
      { numRuns: 500 },
    )
    const told = (text: string) => {
      const checked = checkData(text)
      return 'problems' in checked && checked.problems.map(({ from, to }) => text.slice(from, to))
    }
    expect(told('{"tags": ["a",,]}')).toEqual([','])
    expect(told('{"a": 1, "a": 9007199254740993, "kind": 2, "b": tru}')).toEqual([
      'tru',
      '"a"',
      '9007199254740993',
      '"kind"',
    ])
  })

  it('finds the value at a path, or the nearest around it', () => {
    const text = '{"a/b": [1, {"__proto__": [true]}], "c": {"d": "x"}}'
    const at = (...path: unknown[]) => {
      const { from, to } = placeOf(text, path)
      return text.slice(from, to)
    }
    expect(at('a/b', 1, '__proto__', 0)).toBe('true')
    expect(at('c', 'missing', 'deeper')).toBe('{"d": "x"}')
    expect(at('elsewhere')).toBe('')
  })
})

describe('between', () => {
  const signs = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const position = fc.array(fc.constantFrom(...signs, ...'000zzz'), { minLength: 1, maxLength: 5 })
  it('is the shortest in byte order between two, never ends in 0, and is missing only where nothing fits', () => {
    fc.assert(
      fc.property(fc.option(position), fc.option(position), (one, other) => {
        const [low, high] = [one?.join('') ?? null, other?.join('') ?? null]
        fc.pre(low === null || high === null || low < high)
        const found = between(low, high)
        const fits = (text: string) => (low === null || text > low) && (high === null || text < high)
        if (found === null) {
          expect(high).toMatch(new RegExp(`^${low ?? ''}0+$`))
          return
        }
        expect(fits(found)).toBe(true)
        expect(found.endsWith('0')).toBe(false)
        const shorter = [found.slice(0, -1), high?.slice(0, found.length - 1) ?? ''].filter(
          (text) => text && text.length < found.length && !text.endsWith('0'),
        )
        for (const text of shorter) expect(fits(text)).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  it('finds room again and again at the same place', () => {
    let [low, high] = ['V', 'W']
    for (let n = 0; n < 100; n++) {
      const found = between(low, high) as string
      expect(found > low && found < high).toBe(true)
      if (n % 2) low = found
      else high = found
    }
    expect(high.length).toBeLessThan(25)
  })
})

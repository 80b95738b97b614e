import fc from 'fast-check'
import { afterAll, describe, expect, test as it } from 'vitest'
import { migratedDatabase } from '../../test/fresh-database.ts'
import type { CellData } from '../registry/hooks.ts'
import { mergePatch, sameJson } from './data.ts'

const database = await migratedDatabase()
afterAll(() => database.drop())

describe('mergePatch', () => {
  // The cases of RFC 7396, appendix A, in which both sides are objects, as data and patches always are.
  it.each([
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
    [
      '{"title":"Goodbye!","author":{"givenName":"John","familyName":"Doe"},"tags":["example","sample"],"content":"x"}',
      '{"title":"Hello!","phoneNumber":"+01-123-456-7890","author":{"familyName":null},"tags":["example"]}',
      '{"title":"Hello!","author":{"givenName":"John"},"tags":["example"],"content":"x","phoneNumber":"+01-123-456-7890"}',
    ],
    ['{"a":1}', '{"a":{"b":null,"c":[null]}}', '{"a":{"c":[null]}}'],
    ['{"a":[{"b":1}]}', '{"a":{"b":2}}', '{"a":{"b":2}}'],
    ['{"__proto__":{"x":1}}', '{"__proto__":{"y":2}}', '{"__proto__":{"x":1,"y":2}}'],
    ['{}', '{"constructor":{"prototype":{"z":1}}}', '{"constructor":{"prototype":{"z":1}}}'],
  ])('%s with %s gives %s', (target, patch, merged) => {
    const before = JSON.parse(target)
    expect(JSON.stringify(mergePatch(before, JSON.parse(patch)))).toBe(merged)
    expect(JSON.stringify(before)).toBe(target)
  })

  it('agrees with the pseudo-code of the RFC on every pair of objects', () => {
    const isObject = (value: unknown): value is Map<string, unknown> => value instanceof Map
    const toMap = (value: unknown): unknown =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? new Map(Object.entries(value).map(([key, inner]) => [key, toMap(inner)]))
        : value
    const naive = (target: unknown, patch: unknown): unknown => {
      if (!isObject(patch)) return patch
      const result = new Map(isObject(target) ? target : [])
      for (const [name, value] of patch)
        if (value === null) result.delete(name)
        else result.set(name, naive(result.get(name), value))
      return result
    }
    const key = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor')
    const { object } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'medium' },
        fc.constantFrom(null, 1, 'x', true),
        fc.array(tie('value'), { maxLength: 2 }),
        tie('object'),
      ),
      object: fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((entries) => {
        // As JSON.parse builds it: every key is an own key, even `__proto__`.
        const made = {}
        for (const [name, value] of entries)
          Object.defineProperty(made, name, { value, enumerable: true, configurable: true, writable: true })
        return made
      }),
    }))
    fc.assert(
      fc.property(object, object, (target, patch) => {
        expect(toMap(mergePatch(target, patch as CellData))).toEqual(naive(toMap(target), toMap(patch)))
      }),
    )
  })
})

describe('sameJson', () => {
  it.each([
    ['{"a":1,"b":2}', '{"b":2,"a":1}', true],
    ['{"a":1}', '{"a":1.0}', true],
    ['{"a":0}', '{"a":-0}', true],
    ['{"a":[1,2]}', '{"a":[2,1]}', false],
    ['{"a":[]}', '{"a":{}}', false],
    ['{"a":null}', '{}', false],
    ['{"a":null}', '{"b":null}', false],
    ['{"a":"1"}', '{"a":1}', false],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}', false],
    ['{"__proto__":{}}', '{"toString":{}}', false],
    ['{"toString":null}', '{"valueOf":null}', false],
  ])('%s and %s: %s', (a, b, same) => {
    expect(sameJson(JSON.parse(a), JSON.parse(b))).toBe(same)
    expect(sameJson(JSON.parse(b), JSON.parse(a))).toBe(same)
  })

  it('agrees with the database on every pair of values', async () => {
    const small = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom(null, 0, 1, 'x', '', true, false),
        fc.array(tie('value'), { maxLength: 2 }),
        fc.dictionary(fc.constantFrom('a', 'b'), tie('value'), { maxKeys: 2, noNullPrototype: true }),
      ),
    })).value
    const pairs = fc
      .sample(fc.tuple(small, small), 500)
      .map(([a, b]) => [JSON.stringify(a), JSON.stringify(b)])
    const client = await database.open()
    const { rows } = await client.query<{ same: boolean }>(
      `select p -> 0 = p -> 1 as same from jsonb_array_elements($1::jsonb) with ordinality as t (p, n) order by n`,
      [`[${pairs.map((pair) => `[${pair.join()}]`).join()}]`],
    )
    expect(pairs.map(([a, b]) => sameJson(JSON.parse(a as string), JSON.parse(b as string)))).toEqual(
      rows.map(({ same }) => same),
    )
  })
})

import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import { parseJson } from './parse-json.ts'

/** Names that engines have confused. */
const name = fc.oneof(
  fc.constantFrom(
    '',
    '\\',
    '"',
    '\n',
    '/',
    'a\\',
    'a\n',
    '\\n',
    '\n\n',
    '\u0000',
    'é\\',
    '__proto__',
    '1',
    '\ue000',
  ),
  fc.string({ unit: anyCharacter, maxLength: 3 }),
)
type Tree = [string, Tree | number][]
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.array(fc.tuple(name, fc.oneof({ maxDepth: 3 }, fc.nat(), tie('tree'))), { maxLength: 5 }),
}))

const text = (entries: Tree): string =>
  `{${entries.map(([key, of]) => `${JSON.stringify(key)} :${typeof of === 'number' ? of : `[${text(of)}]`}`).join(',')}}`
const made = (entries: Tree): object =>
  Object.fromEntries(entries.map(([key, of]) => [key, typeof of === 'number' ? of : [made(of)]]))

describe('parseJson', () => {
  it('reads every key as it was written, whatever was read before', () => {
    fc.assert(
      fc.property(tree, (entries) => {
        // Compared as text, so that it does not matter how engines compare objects.
        expect(JSON.stringify(parseJson(text(entries)))).toBe(JSON.stringify(made(entries)))
      }),
      { numRuns: 3000 },
    )
  })

  it('confuses no key with one that somebody else has sent', () => {
    for (const at of ['x', 'y', 'z']) {
      expect(parseJson(`{"${at}":1,"\\\\":2}`)).toEqual({ [at]: 1, '\\': 2 })
      for (const [escaped, key] of [
        ['\\n', '\n'],
        ['\\"', '"'],
        ['\\u0041', 'A'],
      ] as const)
        expect(JSON.stringify(parseJson(`{"${at}":1,"${escaped}":2}`))).toBe(
          JSON.stringify({ [at]: 1, [key]: 2 }),
        )
    }
  })

  it('keeps the order of keys, whatever it puts in their places meanwhile', async () => {
    // Digits alone would be an index, and objects list those first.
    const random = vi.spyOn(crypto, 'randomUUID').mockReturnValue('00000000-0000-4000-8000-000012345678')
    const address = './parse-json.ts?digits'
    const anew: typeof import('./parse-json.ts') = await import(address)
    random.mockRestore()
    expect(JSON.stringify(anew.parseJson('{"x":1,"\\n":2}'))).toBe('{"x":1,"\\n":2}')
  })

  it('lets the last of several equal keys count, with escapes or without', () => {
    for (const [sent, read] of [
      ['{"a":1,"\\u0061":2,"a":3}', '{"a":3}'],
      ['{"\\u0061":1,"b":2,"a":3,"\\u0061":4}', '{"a":4,"b":2}'],
      ['{"\\u0031":1,"1":2}', '{"1":2}'],
      ['{"x":{"\\/":1},"/":2,"\\/":3,"/":4}', '{"x":{"/":1},"/":4}'],
      ['{"__proto__":1,"\\u005f_proto__":2,"__proto__":3}', '{"__proto__":3}'],
    ] as const)
      expect(JSON.stringify(parseJson(sent))).toBe(read)
  })

  it('keeps a key `__proto__`, and reads a text that nests deeper than functions call each other', () => {
    const value = parseJson('{"\\u005f_proto__":{"a":1}}') as object
    expect([Object.keys(value), Object.getPrototypeOf(value)]).toEqual([['__proto__'], Object.prototype])
    const deep = 100_000
    let at = parseJson(`${'{"\\n":['.repeat(deep)}${']}'.repeat(deep)}`) as Record<string, unknown[]>
    let levels = 1
    for (; at['\n']?.[0]; levels++) at = at['\n'][0] as typeof at
    expect(levels).toBe(deep)
  })

  it('throws for what JSON.parse throws for', () => {
    const broken = fc
      .tuple(tree, fc.nat(), fc.constantFrom('', '"', '\\', ',', '{', ']', ':', '\n', 'x'), fc.nat(2))
      .map(([entries, at, put, gone]) => {
        const whole = text(entries)
        const from = at % (whole.length + 1)
        return whole.slice(0, from) + put + whole.slice(from + gone)
      })
    const isRead = (parse: (text: string) => unknown, sent: string): boolean => {
      try {
        parse(sent)
        return true
      } catch (error) {
        expect(error).toBeInstanceOf(SyntaxError)
        return false
      }
    }
    fc.assert(
      fc.property(broken, (sent) => {
        expect(isRead(parseJson, sent)).toBe(isRead(JSON.parse, sent))
      }),
      { numRuns: 3000 },
    )
  })

  it.each(['', '{"\\n":1', '{"\\n":1}}', '{"\\x":1}', '"\\'])('throws for %s', (broken) => {
    expect(() => parseJson(broken)).toThrow(SyntaxError)
  })
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../test/helpers/any-character.ts'
import { afterPrefix, hasPrefix } from './prefix.ts'
import { compile, sql } from './sql.ts'

const inByteOrder = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
/** Letters around the length boundaries of UTF-8 and the surrogates. */
const edges = [
  'a',
  'b',
  '\u007f',
  '\u0080',
  '\u07ff',
  '\u0800',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '\u{10000}',
  '\u{10ffff}',
]
const text = fc.array(
  fc.oneof(fc.constantFrom(...edges), fc.string({ unit: anyCharacter, minLength: 1, maxLength: 1 })),
  {
    maxLength: 4,
  },
)

test('a text has a prefix exactly if it is in the range from the prefix to its end', () => {
  fc.assert(
    fc.property(text, text, (prefixLetters, letters) => {
      const prefix = prefixLetters.join('')
      const end = afterPrefix(prefix)
      for (const one of [letters.join(''), prefix + letters.join('')]) {
        const isWithin = inByteOrder(one, prefix) >= 0 && (end === undefined || inByteOrder(one, end) < 0)
        expect(isWithin).toBe(one.startsWith(prefix))
      }
    }),
    { numRuns: 2000 },
  )
})

test('a prefix that repeats the last code point has no end', () => {
  expect(afterPrefix('')).toBeUndefined()
  expect(afterPrefix('\u{10ffff}\u{10ffff}')).toBeUndefined()
  expect(compile(hasPrefix(sql`name`, '\u{10ffff}')).values).toEqual(['\u{10ffff}'])
  expect(compile(hasPrefix(sql`name`, 'a\u{10ffff}')).values).toEqual(['a\u{10ffff}', 'b'])
})

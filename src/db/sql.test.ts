import fc from 'fast-check'
import { expect, it } from 'vitest'
import { nameless, type Sql, sql } from './sql.ts'

it('plain text is no statement, and the error says what is', () => {
  expect(() => nameless('select 1' as never)).toThrow('sql`select …`')
})

/** A fragment and what it must become: its text with `?` for each value, and the values. */
type Made = { sql: Sql; text: string; values: unknown[] }

const joined = (parts: readonly Made[], separator: string): Omit<Made, 'sql'> => ({
  text: parts.map(({ text }) => text).join(separator),
  values: parts.flatMap(({ values }) => values),
})
const value = fc.oneof(
  fc.string(),
  fc.constant(null),
  fc.constant(undefined),
  fc.constant({ strings: ['; drop table cell'], parts: [] }),
)
const { fragment } = fc.letrec<{ fragment: Made }>((tie) => ({
  fragment: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('a', 'b', '').map((text) => ({ sql: sql.raw(text), text, values: [] })),
    value.map((one) => ({ sql: sql`x = ${one}`, text: 'x = ?', values: [one] })),
    fc.tuple(tie('fragment'), tie('fragment'), value).map(([a, b, one]) => ({
      sql: sql`${a.sql} and ${one} or ${b.sql}`,
      text: `${a.text} and ? or ${b.text}`,
      values: [...a.values, one, ...b.values],
    })),
    fc
      .tuple(fc.array(tie('fragment'), { maxLength: 4 }), fc.constantFrom(', ', ' or '))
      .map(([parts, separator]) => ({
        sql: sql.join(
          parts.map((part) => part.sql),
          separator,
        ),
        ...joined(parts, separator),
      })),
  ),
}))

it('a statement has the text of its fragments and numbers its values, however often it was sent before', () => {
  fc.assert(
    fc.property(fragment, (made) => {
      let count = 0
      const text = made.text.replaceAll('?', () => `$${++count}`)
      for (let time = 0; time < 2; time++) expect(nameless(made.sql)).toEqual({ text, values: made.values })
    }),
    { numRuns: 5000 },
  )
})

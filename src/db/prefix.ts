import { type Sql, sql } from './sql.ts'

/**
 * `column` begins with `prefix`, as a range that an index in byte order serves whatever the plan; `like`
 * would need a constant, and `%` and `_` are nothing special here.
 */
export function hasPrefix(column: Sql, prefix: string): Sql {
  const end = afterPrefix(prefix)
  const isAfter = sql`${column} >= ${unplanned(prefix)}`
  return end === undefined ? isAfter : sql`${isAfter} and ${column} < ${unplanned(end)}`
}

/**
 * A text that the planner does not see, so that it keeps one plan for all: to make one for each takes longer than
 * most pages do.
 */
export const unplanned = (text: string): Sql => sql`(select ${text}::text)`

/** The least text, in byte order, above every text with this prefix; undefined where there is none. */
export function afterPrefix(prefix: string): string | undefined {
  const points = [...prefix]
  while (points.length > 0) {
    const last = (points.pop() as string).codePointAt(0) as number
    // Byte order of UTF-8 is the order of code points; surrogates are none.
    if (last < 0x10ffff) return points.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1)
  }
  return undefined
}

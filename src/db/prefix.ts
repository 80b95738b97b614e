import { type Sql, sql } from './sql.ts'

/**
 * `column` begins with `prefix`, as a range that an index in byte order serves whatever the plan; `like`
 * would need a constant, and `%` and `_` are nothing special here.
 */
export function hasPrefix(column: Sql, prefix: string): Sql {
  const end = afterPrefix(prefix)
  return end === undefined ? sql`${column} >= ${prefix}` : sql`${column} >= ${prefix} and ${column} < ${end}`
}

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

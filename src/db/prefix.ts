import { type Sql, sql } from './sql.ts'
import { unplanned } from './unplanned.ts'

/**
 * `column` begins with `prefix`, written as a range that an index in byte order always supports: `like` needs
 * a constant pattern for that, and gives `%` and `_` a meaning.
 */
export function hasPrefix(column: Sql, prefix: string): Sql {
  const end = afterPrefix(prefix)
  const isAfter = sql`${column} >= ${unplanned(prefix)}`
  return end === undefined ? isAfter : sql`${isAfter} and ${column} < ${unplanned(end)}`
}

/** The smallest text, in byte order, above every text with this prefix; undefined if there is none. */
export function afterPrefix(prefix: string): string | undefined {
  const points = [...prefix]
  while (points.length > 0) {
    const last = (points.pop() as string).codePointAt(0) as number
    // UTF-8 sorts bytewise by code point; surrogates are not valid code points.
    if (last < 0x10ffff) return points.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1)
  }
  return undefined
}

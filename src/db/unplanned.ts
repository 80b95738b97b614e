import { type Sql, sql } from './sql.ts'

type Planned = 'text' | 'uuid' | 'timestamptz' | 'text[]' | 'uuid[]'

/**
 * Hides a value from the planner, so that one generic plan serves every value: planning for each value takes
 * longer than most pages do. Of an array it hides the length. PostgreSQL takes an array that it does not know for ten
 * elements, and plans for each shorter one anew, since that looks cheaper; of several arrays beside each other the
 * longest counts, so that it is enough to hide one.
 */
export const unplanned = (value: string | readonly string[], type: Planned = 'text'): Sql =>
  sql`(select ${value}::${sql.raw(type)})`

/** The right side of `=`: one of these. The outer cast makes it a value, where it would be a subquery. */
export const anyOf = (ids: readonly string[]): Sql => sql`any(${unplanned(ids, 'uuid[]')}::uuid[])`

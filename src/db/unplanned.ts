import { type Sql, sql } from './sql.ts'

type Planned = 'text' | 'uuid' | 'timestamptz' | 'text[]' | 'uuid[]'

/**
 * Hides a value from the planner, so that one generic plan serves every value: planning for each value takes longer
 * than most pages do. For an array it hides the length: PostgreSQL assumes ten elements for an unknown array, and would
 * plan each shorter array anew, since that looks cheaper. For several arrays in parallel the longest counts, so hiding
 * one is enough.
 */
export const unplanned = (value: string | readonly string[], type: Planned = 'text'): Sql =>
  sql`(select ${value}::${sql.raw(type)})`

/**
 * The right side of `=`, for one of these ids. Without the outer cast, `any (select …)` would be read as a subquery.
 */
export const anyOf = (ids: readonly string[]): Sql => sql`any(${unplanned(ids, 'uuid[]')}::uuid[])`

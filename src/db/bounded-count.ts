import { type Sql, sql } from './sql.ts'

/** How far counts for people go; beyond it they say "1000 or more". */
export const countedMax = 1000

/** How many rows the query gives, counted to `countedMax` and reading no more. */
export const boundedCount = (rows: Sql): Sql =>
  sql`(select count(*)::int from (${rows} limit ${sql.raw(countedMax)}) counted)`

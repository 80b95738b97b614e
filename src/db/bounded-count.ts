import { type Sql, sql } from './sql.ts'

/** The highest count shown to people; beyond it they see "1000 or more". */
export const countedMax = 1000

/** The number of rows of the query, at most `countedMax`; it reads no more rows than that. */
export const boundedCount = (rows: Sql): Sql =>
  sql`(select count(*)::int from (${rows} limit ${sql.raw(countedMax)}) counted)`

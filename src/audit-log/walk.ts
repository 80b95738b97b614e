import { type Sql, sql } from '../db/db.ts'

/** The rows with one value of an indexed column; undefined: the whole log. */
type Source = { column: 'event_type' | 'account_id' | 'target_account_id'; value: Sql } | undefined

/** The rows of all sources, which may overlap, that pass the filters. */
export type Selection = { sources: readonly Source[]; filters: readonly Sql[] }

/** The rows between two numbers, both exclusive. */
export type Stretch = { direction: 'asc' | 'desc'; from: number; to: number }

/** Above every number that a row can have. */
export const seqEnd = 2 ** 53

/** Rows of a type, an outcome and an account (acting or target); null: any. */
export function selection(filter: {
  event_type?: string | null | undefined
  outcome?: 'success' | 'failure' | null | undefined
  account_id?: string | null | undefined
}): Selection {
  const { event_type = null, outcome = null, account_id = null } = filter
  const filters: Sql[] = []
  // A literal, so that the planner can use the partial index of failures.
  if (outcome !== null) filters.push(sql`outcome = ${sql.raw(`'${outcome}'`)}`)
  if (account_id === null) return { sources: [event_type === null ? undefined : ofType(event_type)], filters }
  if (event_type !== null) filters.push(sql`event_type = ${event_type}`)
  const value = sql`${account_id}::uuid`
  const sources = (['account_id', 'target_account_id'] as const).map((column) => ({ column, value }))
  return { sources, filters }
}

/** Rows of any of these types; other rows are not scanned. */
export const ofTypes = (...types: string[]): Selection => ({ sources: types.map(ofType), filters: [] })

const ofType = (event_type: string): Source => ({ column: 'event_type', value: sql`${event_type}::text` })

/**
 * Selects the first `size` numbers of a selection in the order of the stretch, after skipping `skipped` of them.
 * Each source walks its own index and stops after the rows it needs, however large the log is. Limits are literals
 * because the planner estimates `limit $n` as a tenth of the table.
 */
export function numbersOf(
  { sources, filters }: Selection,
  stretch: Stretch,
  size: number,
  { skipped = 0, skippedMax = 0 }: { skipped?: number; skippedMax?: number } = {},
): Sql {
  const max = skipped === 0 ? size : size + skippedMax
  const found = sources.map((source) => walk(source, stretch, filters, sql.raw(max)))
  return sql`
    select seq from (${sql.join(found, ' union ')}) found order by seq ${sql.raw(stretch.direction)}
    limit ${sql.raw(size)} offset ${skipped}`
}

/**
 * Compares the column and `seq` as a pair. With a plain equality, the planner might walk the whole log by `seq` and
 * filter out other values.
 */
function walk(source: Source, { direction, from, to }: Stretch, filters: readonly Sql[], max: Sql): Sql {
  const order = sql.raw(direction)
  const column = source && sql.raw(source.column)
  const [key, range] = source
    ? [
        sql`${column} ${order}, seq ${order}`,
        sql`(${column}, seq) > (${source.value}, ${from}::bigint)
          and (${column}, seq) < (${source.value}, ${to}::bigint)`,
      ]
    : [sql`seq ${order}`, sql`seq > ${from}::bigint and seq < ${to}::bigint`]
  const conditions = sql.join([sql`seq is not null`, range, ...filters], ' and ')
  return sql`(select seq from audit_log where ${conditions} order by ${key} limit ${max})`
}

import { inside, type Stretch } from '../audit/numbering.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'

/** The rows with one of these values in an indexed column, or in the timeline of a cell; undefined: the whole log. */
type Source =
  | {
      column: 'event_type' | 'account_id' | 'target_account_id' | 'actor_id' | 'target_actor_id'
      values: Sql
    }
  | { cell_id: string }
  | undefined

/** The rows of all sources, which may overlap, that pass the filters. */
export type Selection = { sources: readonly Source[]; filters: readonly Sql[] }

/** What rows to select; null: any. */
export type AuditFilter = {
  event_types?: readonly string[] | null | undefined
  outcome?: 'success' | 'failure' | null | undefined
  /** As the one that acted or as the target, like `actor_id`. */
  account_id?: string | null | undefined
  actor_id?: string | null | undefined
  cell_id?: string | null | undefined
}

/** A filter with an index: its rows are found by the sources or, if another filter finds them, judged by `filter`. */
type Candidate = { sources: readonly Source[]; filter: Sql }

/**
 * The filter with the fewest rows is the source, and the others judge its rows: an account may have a third of the log
 * and no row of the type that is asked for.
 */
export async function selection(
  db: Pick<Queryable, 'one'>,
  { event_types, outcome, account_id, actor_id, cell_id }: AuditFilter,
  stretch: Stretch,
): Promise<Selection> {
  const ofOutcome = outcome ? [sql`outcome = ${sql.raw(`'${outcome}'`)}`] : []
  const candidates: Candidate[] = [
    cell_id && [{ sources: [{ cell_id }], filter: ofCell(cell_id) }],
    actor_id && [either('actor_id', actor_id)],
    account_id && [either('account_id', account_id)],
    event_types && [
      {
        sources: [ofType(event_types)],
        filter: sql`${unindexed('event_type')} = any(${[...event_types]}::text[])`,
      },
    ],
    // The types have an index of failures too.
    outcome === 'failure' && !event_types && [{ sources: [undefined], filter: sql`true` }],
  ].flatMap((one) => one || [])
  const chosen = await fewest(db, candidates, stretch, outcome === 'failure' ? ofOutcome : [])
  const sources = chosen?.sources ?? [undefined]
  const filters = candidates.filter((one) => one !== chosen).map(({ filter }) => filter)
  if (outcome)
    filters.unshift(...(sources.some(hasFailures) ? ofOutcome : [sql`${unindexed('outcome')} = ${outcome}`]))
  return { sources, filters }
}

/**
 * As an expression, so that no plan reads all rows of a type, or all failures, for the rows of another source. For the
 * same reason accounts and actors are compared with arrays: a list would be two conditions with an index each.
 */
const unindexed = (column: 'event_type' | 'outcome'): Sql => sql`(${sql.raw(column)} || '')`

const either = (what: 'account_id' | 'actor_id', id: string): Candidate => ({
  sources: ([what, `target_${what}`] as const).map((column) => ({ column, values: sql`array[${id}::uuid]` })),
  filter: sql`${id}::uuid = any(array[${sql.raw(what)}, ${sql.raw(`target_${what}`)}])`,
})

/** By the timeline, which ends with its cell; the log keeps the rows. */
const ofCell = (cell_id: string): Sql => sql`(
  select true from audit_cell c where c.cell_id = ${cell_id}::uuid and c.seq = audit_log.seq)`

/** Rows that are counted to compare filters; reading so many takes a few milliseconds. */
const comparedMax = 5000

/**
 * The candidate with the fewest rows in a stretch; where all have many, the first. `ofFailures`: the filter that the
 * indexes of failures answer; any other might drop millions of rows before it has kept enough.
 */
async function fewest(
  db: Pick<Queryable, 'one'>,
  candidates: readonly Candidate[],
  stretch: Stretch,
  ofFailures: readonly Sql[],
): Promise<Candidate | undefined> {
  if (candidates.length < 2) return candidates[0]
  const max = sql.raw(comparedMax)
  const counted = candidates.map(({ sources }) => {
    const entries = sources.map((source) =>
      source === undefined
        ? // Without an order: a generic plan would read and sort all failures.
          sql`(select seq from audit_log where ${sql.join([...ofFailures, inside(sql`seq`, stretch)], ' and ')} limit ${max})`
        : walk(source, stretch, hasFailures(source) ? ofFailures : [], max),
    )
    return sql`(
      select count(*)::int from (select from (${sql.join(entries, ' union all ')}) entry limit ${max}) counted)`
  })
  const { counts } = await db.one<{ counts: number[] }>(
    sql`select array[${sql.join(counted, ', ')}] as counts`,
  )
  return candidates[counts.indexOf(Math.min(...counts))]
}

/** Whether there is an index of the failures of a source. A literal lets the planner use it. */
const hasFailures = (source: Source): boolean =>
  source === undefined || ('column' in source && source.column === 'event_type')

/** Rows of any of these types; other rows are not scanned. */
export const ofTypes = (...types: string[]): Selection => ({ sources: [ofType(types)], filters: [] })

/** Each number of separate parameters is another statement text, so this is small. */
const apartMax = 8

/**
 * Few types are separate parameters, so that the planner knows how many there are. It assumes that an array has ten,
 * rejects the generic plan as too expensive, and then plans the statement for each call, which takes longer with each
 * partition.
 */
const ofType = (types: readonly string[]): Source => ({
  column: 'event_type',
  values:
    types.length <= apartMax
      ? sql`array[${sql.join(
          types.map((type) => sql`${type}::text`),
          ', ',
        )}]`
      : sql`${[...types]}::text[]`,
})

/**
 * Selects the first `size` numbers of a selection in the order of the stretch, after skipping `skipped` of them.
 * Each source walks its own index and stops after the rows it needs, however large the log is. Limits are literals
 * because the planner estimates `limit $n` as a tenth of the table.
 */
export function numbersOf(
  { sources, filters }: Selection,
  stretch: Stretch<number | Sql>,
  size: number,
  { skipped = 0, skippedMax = 0 }: { skipped?: number; skippedMax?: number } = {},
): Sql {
  const max = skipped === 0 ? size : size + skippedMax
  const found = sources.map((source) => walk(source, stretch, filters, sql.raw(max)))
  return sql`
    select seq from (${sql.join(found, ' union ')}) found order by seq ${sql.raw(stretch.direction)}
    limit ${sql.raw(size)} offset ${skipped}`
}

/** Walks the index of a source; the other columns are probed row by row. */
function walk(
  source: Source,
  { direction, from, to, isNarrow = false }: Stretch<number | Sql>,
  filters: readonly Sql[],
  max: Sql,
): Sql {
  const order = sql.raw(direction)
  const conditions = [sql`true`, ...filters]
  if (source && 'cell_id' in source) {
    // A scalar subquery is always one probe by number; for a join the planner may read the whole log.
    const passes = sql`(
      select ${sql.join(conditions, ' and ')} from audit_log where seq = c.seq and ${inside(sql`seq`, { from, to })})`
    return sql`(
      select c.seq from audit_cell c
      where ${between(sql`c.cell_id, c.seq`, sql`${source.cell_id}::uuid, `, { from, to })}
        and ${isNarrow ? inside(sql`c.seq`, { from, to }) : sql`true`} and ${passes}
      order by c.cell_id ${order}, c.seq ${order} limit ${max})`
  }
  const rows = (key: Sql, value: Sql, inOrder: Sql): Sql => sql`
    select seq from audit_log where ${sql.join([...conditions, between(key, value, { from, to })], ' and ')}
    order by ${inOrder} limit ${max}`
  if (!source) return sql`(${rows(sql`seq`, sql.empty, sql`seq ${order}`)})`
  const column = sql.raw(source.column)
  conditions.push(sql`${column} is not null`)
  // Only for a narrow stretch: a generic plan would assume that any stretch is short, and sort it.
  if (isNarrow) conditions.push(inside(sql`seq`, { from, to }))
  const found = rows(sql`${column}, seq`, sql`of.value, `, sql`${column} ${order}, seq ${order}`)
  return sql`(select found.seq from unnest(${source.values}) as of (value) cross join lateral (${found}) found)`
}

/**
 * Compares the columns of an index as one. With a plain equality for the first, the planner might walk the whole log
 * by `seq` and filter out other values.
 */
const between = (key: Sql, value: Sql, { from, to }: { from: number | Sql; to: number | Sql }): Sql =>
  sql`(${key}) > (${value}${from}::bigint) and (${key}) < (${value}${to}::bigint)`

import { z } from 'zod'
import { EventType } from '../audit/entry.ts'
import { type Stretch, seqEnd } from '../audit/numbering.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Uuid } from '../wire/types.ts'
import type { AuditFilter } from './selection.ts'

const typesMax = 50

/** The input keys by which rows of the log are filtered. */
export const filterInput = {
  event_type: EventType.nullish(),
  event_types: z.array(EventType).min(1).max(typesMax).nullish(),
  outcome: z.enum(['success', 'failure']).nullish(),
  account_id: Uuid.nullish().describe('As the account that acted or as the target.'),
  actor_id: Uuid.nullish().describe('As the actor that acted or as the target.'),
  cell_id: Uuid.nullish().describe('Named by the row, as in the timeline of the cell.'),
}
const Filter = z.object(filterInput)

/** The filters that were given, each in one form. */
export function filterOf({ event_type, event_types, ...others }: z.output<typeof Filter>): AuditFilter {
  if (event_type && event_types)
    throw refusal('invalid_params', {
      issues: [issue(['event_types'], 'invalid_value', 'Give only one of `event_type` and `event_types`.')],
    })
  const types = event_types ? [...new Set(event_types)].sort() : event_type && [event_type]
  const given = Object.entries({ ...others, event_types: types }).filter(([, value]) => value != null)
  return Object.fromEntries(given) as AuditFilter
}

/** From one time to another, exclusive; null: without that bound. */
type Period = { from?: string | null | undefined; to?: string | null | undefined }

export function refuseEmpty({ from, to }: Period): void {
  if (from && to && from >= to)
    throw refusal('invalid_params', {
      issues: [issue(['to'], 'invalid_value', 'A time after `from` is required.')],
    })
}

/**
 * Longer than any transaction of the service: if two rows are further apart than this, the later one has the higher
 * number, unless the clock has jumped.
 */
const slack = sql`interval '1 minute'`

/** How many rows just inside a bound are examined to judge whether its number can be right. */
const judges = 10

/** Narrows a stretch to the numbers that rows of a period can have; `times` are the conditions for its rows. */
export async function within<S extends Stretch>(
  db: Pick<Queryable, 'one'>,
  { from = null, to = null }: Period,
  stretch: S,
): Promise<{ stretch: S; times: Sql[] }> {
  if (from === null && to === null) return { stretch, times: [] }
  const nearest = (bound: Sql, order: 'asc' | 'desc', count: number): Sql => sql`(
    select seq from audit_log where ${bound} order by created_at ${sql.raw(order)} limit ${sql.raw(count)})`
  const outermost = (which: 'min' | 'max', rows: Sql): Sql =>
    sql`(select ${sql.raw(which)}(seq) from ${rows} near)`
  type Found = { before: number | null; first: number | null; last: number | null; after: number | null }
  const { before, first, last, after } = await db.one<Found>(sql`
    select ${nearest(sql`created_at < ${from}::timestamptz - ${slack}`, 'desc', 1)} as before,
      ${outermost('min', nearest(sql`created_at >= ${from}::timestamptz`, 'asc', judges))} as first,
      ${outermost('max', nearest(sql`created_at < ${to}::timestamptz`, 'desc', judges))} as last,
      ${nearest(sql`created_at > ${to}::timestamptz + ${slack}`, 'asc', 1)} as after`)
  // The row next to a bound may have been written after a clock jump; then rows of the period lie beyond its number.
  const lowest = before !== null && (first === null || before < first) ? before : 0
  const highest = after !== null && (last === null || after > last) ? after : seqEnd
  // An expression, so that no plan reads the whole period by the index on the time and sorts it.
  const time = sql`(created_at + interval '0')`
  const times = [
    ...(from === null ? [] : [sql`${time} >= ${from}::timestamptz`]),
    ...(to === null ? [] : [sql`${time} < ${to}::timestamptz`]),
  ]
  return {
    stretch: {
      ...stretch,
      from: Math.max(stretch.from, lowest),
      to: Math.min(stretch.to, highest),
    },
    times,
  }
}

import { z } from 'zod'
import { AuditEvent, auditColumns, numberRows } from '../audit/entry.ts'
import type { App } from '../core/app.ts'
import { closePage, openPage, type Page, pageInput, pageSize } from '../core/page.ts'
import { type Database, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { Int } from '../wire/types.ts'

/** A row with the current usernames of its accounts; the log itself stores no names. */
const NamedEvent = AuditEvent.extend({
  username: z.string().nullable(),
  target_username: z.string().nullable(),
})
type NamedEvent = z.output<typeof NamedEvent>

export const auditPage = z.object({ events: z.array(NamedEvent), next_cursor: z.string().nullable() })

const offsetMax = 10_000

export const auditPageInput = { ...pageInput(), offset: Int(0, offsetMax).nullish() }
type PageInput = {
  limit: number
  cursor?: string | null | undefined
  offset?: number | null | undefined
  since_seq?: number | null | undefined
}

export type AuditPage = Stretch & { page: Page; offset: number }

/** Where a page begins. The cursor holds the direction, so callers only need to repeat the filters. */
export function openAuditPage(
  app: App,
  method: string,
  bound: Readonly<Record<string, unknown>>,
  input: PageInput,
): AuditPage {
  const { cursor, offset, since_seq } = input
  const isGiven = (value: unknown): boolean => value !== null && value !== undefined
  const refuse = (key: 'cursor' | 'offset') =>
    refusal('invalid_params', {
      issues: [issue([key], 'invalid_value', 'Give only one of `cursor`, `offset` and `since_seq`.')],
    })
  if (isGiven(cursor) && (isGiven(offset) || isGiven(since_seq))) throw refuse('cursor')
  if (isGiven(offset) && isGiven(since_seq)) throw refuse('offset')
  const page = openPage(app, method, bound, input)
  const [after, way] = (page.after ?? []) as [number?, Stretch['direction']?]
  const direction = way ?? (isGiven(since_seq) ? 'asc' : 'desc')
  return {
    page,
    direction,
    from: direction === 'asc' ? (after ?? since_seq ?? 0) : 0,
    to: direction === 'desc' ? (after ?? seqEnd) : seqEnd,
    offset: offset ?? 0,
  }
}

/**
 * One page of a selection. The rows are read last, with the username of the actor's account or, without an actor,
 * of the account.
 */
export async function readAuditPage(
  app: App,
  db: Pick<Database, 'rows'>,
  { page, offset, ...stretch }: AuditPage,
  selected: Selection,
): Promise<z.output<typeof auditPage>> {
  await numberRows(app.db)
  const skip = { skipped: offset, skippedMax: offsetMax }
  const rows = await db.rows<NamedEvent>(sql`
    with page as (${numbersOf(selected, stretch, pageSize(page.limit), skip)})
    select ${auditColumns}, doer.username, subject.username as target_username
    from page join audit_log l on l.seq = page.seq and l.seq is not null
      left join actor on actor.id = l.actor_id
      left join account doer on doer.id = coalesce(actor.account_id, l.account_id)
      left join actor target on target.id = l.target_actor_id
      left join account subject on subject.id = coalesce(target.account_id, l.target_account_id)
    order by l.seq ${sql.raw(stretch.direction)}`)
  const { rows: events, next_cursor } = closePage(app, page, rows, ({ seq }) => [seq, stretch.direction])
  return { events, next_cursor }
}

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

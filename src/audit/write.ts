import { z } from 'zod'
import { type Database, type Sql, sql } from '../db/db.ts'
import { unplanned } from '../db/unplanned.ts'
import type { Log } from '../log/log.ts'
import type { EventTypes } from '../registry/event-types.ts'
import { badText, mayHoldBadText } from '../wire/issues.ts'
import type { AuditRow, AuditSubject } from './audit.ts'
import { createLosses } from './loss.ts'

/** The authenticated caller: these two ids are known to belong together. */
export type Pair = Pick<AuditSubject, 'actor_id' | 'account_id'>

/** The audit rows of one of the calls that share a statement. */
type Entry = { rows: readonly AuditRow[]; caller?: Pair | undefined }

/** The result of the statement that writes rows, or its error. */
type Answer = readonly unknown[] | Error

/**
 * Writes audit rows through a database function that catches a failing insert: the mutation commits anyway, and
 * the loss is logged and counted.
 */
export type AuditWriter = {
  /** The expression that writes `rows`, whose JSON `edited` may edit, and returns what `settle` takes as `report`. */
  expression(rows: readonly AuditRow[], caller?: Pair, edited?: (text: Sql) => Sql): Sql
  /**
   * The same for the rows of the entries whose `nth`, from 1, is in the relation `stored`. It is a subquery, which runs
   * once.
   */
  shared(entries: readonly Entry[], stored: Sql): Sql
  /** The statement that writes `rows`; it is pipelined with the mutation's COMMIT. */
  statement(rows: readonly AuditRow[], caller?: Pair): Sql
  /** Handles the result of that statement. */
  settle(answer: Answer, rows: readonly AuditRow[]): void
  /** True if the database function failed, and not the statement around it. */
  isToBlame(error: unknown): boolean
  /** Writes the rows of a refused or rolled-back mutation, in order and outside any transaction; never throws. */
  failure(rows: AuditRow | readonly AuditRow[], caller?: Pair): Promise<void>
  /** Stores the count of lost rows if an earlier attempt failed. */
  flush(): Promise<void>
  /** Writes that failed since the start, wholly or in part. */
  readonly failures: number
  /** Rows lost in those writes. */
  readonly lost: number
  /** Rows written since the start although they break a rule of their type. */
  readonly flaws: number
}

/** Max size of metadata as JSON, in bytes. */
const metadataMax = 8192
/** Max lost rows that one log line lists. */
const namedMax = 50

export function createAuditWriter(db: Database, log: Log, types: EventTypes): AuditWriter {
  const losses = createLosses(db, log)
  const counts = { failures: 0, lost: 0, flaws: 0 }
  const lose = (rows: readonly AuditRow[], cause: string, err?: Error): void => {
    counts.failures += 1
    counts.lost += rows.length
    log.error(
      {
        event: 'audit_rows_lost',
        failure: cause,
        rows: rows.length,
        lost: rows.slice(0, namedMax).map(nameable),
        ...(err && { err }),
      },
      'audit rows could not be written; the mutation went on without them',
    )
    losses.add(rows.length, cause)
  }
  const flawed = (event_type: string | undefined, flaw: string): void => {
    counts.flaws += 1
    log.error(
      { event: 'audit_row_flawed', event_type, flaw },
      'an audit row breaks the rules of its type; it was written anyway',
    )
  }
  const toJson = (row: AuditRow): string => {
    const { text, flaw } = rendered(row, types)
    if (flaw !== undefined) flawed(row.event_type, flaw)
    return text
  }
  const textOf = (rows: readonly AuditRow[]): string => rows.map(toJson).join(',')
  const expression: AuditWriter['expression'] = (rows, caller, edited = (text) => text) =>
    sql`${writer([{ rows, caller }])}(${edited(sql`${`[${textOf(rows)}]`}`)}::json)`
  const shared: AuditWriter['shared'] = (entries, stored) => {
    const texts = entries.map(({ rows }) => textOf(rows))
    return sql`(
      select ${writer(entries)}(('[' || string_agg(entry.rows, ',' order by nth) || ']')::json)
        from ${stored} join unnest(${unplanned(texts, 'text[]')}) with ordinality as entry (rows, nth) using (nth)
      having count(*) > 0)`
  }
  const statement: AuditWriter['statement'] = (rows, caller) =>
    sql`select ${expression(rows, caller)} as report`
  const settle: AuditWriter['settle'] = (answer, rows) => {
    if (answer instanceof Error) return lose(rows, answer.message, answer)
    const { report } = (answer[0] ?? {}) as { report?: string | null }
    if (typeof report !== 'string') return
    const { lost, cause, mended } = parsed(report, rows)
    if (lost.length > 0) lose(pick(rows, lost), cause)
    for (const row of pick(rows, mended)) flawed(row.event_type, 'the account is not the one of the actor')
  }
  const failure: AuditWriter['failure'] = async (given, caller) => {
    const rows = [given].flat() as AuditRow[]
    try {
      settle(await db.rows(statement(rows, caller)), rows)
    } catch (error) {
      settle(error as Error, rows)
    }
  }
  return Object.assign(counts, {
    expression,
    shared,
    statement,
    settle,
    isToBlame,
    failure,
    flush: losses.flush,
  })
}

/** PostgreSQL names the function in the message if it is missing or forbidden, else in the context. */
function isToBlame(error: unknown): boolean {
  const { message, where } = error as { message?: string; where?: string }
  return /\baudit_write/.test(`${message} ${where}`)
}

/** The function that writes the rows; the one that checks pairs is used only if some pair has not been verified. */
const writer = (entries: readonly Entry[]): Sql =>
  entries.some(({ rows, caller }) => rows.some((row) => isUnpaired(row, caller)))
    ? sql`audit_write_paired`
    : sql`audit_write`

/** True if a row names an actor other than the caller: its account has not been verified. */
function isUnpaired(row: AuditRow, caller: Pair | undefined): boolean {
  const isOther = (actor_id: string | null, account_id: string | null): boolean =>
    actor_id !== null && !(caller && actor_id === caller.actor_id && account_id === caller.account_id)
  return isOther(row.actor_id, row.account_id) || isOther(row.target_actor_id, row.target_account_id)
}

const places = z.array(z.int()).default([])
const Report = z.object({ lost: places, mended: places, cause: z.string().default('') })

/** If the database function was replaced by another one, assume that nothing was stored. */
function parsed(report: string, rows: readonly AuditRow[]): z.output<typeof Report> {
  try {
    return Report.parse(JSON.parse(report))
  } catch {
    return { lost: [...rows.keys()], mended: [], cause: 'audit_write() answered in another form' }
  }
}

const pick = (rows: readonly AuditRow[], places: readonly number[]): AuditRow[] =>
  places.flatMap((place) => rows[place] ?? [])

/** The parts of a row that may be logged. Metadata is left out, because that of a purge names an account. */
const nameable = ({ event_type, outcome, ...row }: AuditRow) => ({
  event_type,
  outcome,
  actor_id: row.actor_id,
  account_id: row.account_id,
  target_actor_id: row.target_actor_id,
  target_account_id: row.target_account_id,
})

/**
 * The row as JSON that the table accepts, and how it breaks the rules of its type. A flawed row is still written,
 * without its metadata if necessary: the log must not miss what happened.
 */
function rendered(given: AuditRow, types: EventTypes): { text: string; flaw?: string | undefined } {
  const row = withUuids(given)
  const { metadata } = row
  const text = jsonOf(row)
  const instead = (kept: AuditRow['metadata'], flaw: string) => ({
    text: JSON.stringify({ ...row, metadata: kept }),
    flaw,
  })
  // A consumer's handler may pass anything.
  if (text === undefined || typeof metadata !== 'object' || Array.isArray(metadata))
    return instead(null, 'the metadata is not an object that JSON can represent')
  // Few rows have such an escape at all.
  if (text.includes('\\u') && mayHoldBadText(text) && badText(metadata))
    return instead(null, 'the metadata holds text that cannot be stored')
  // A UTF-16 unit takes at most three bytes, so rows of typical size need no exact count.
  if (text.length * 3 > metadataMax && Buffer.byteLength(JSON.stringify(metadata)) > metadataMax)
    return instead({ oversize: true }, `the metadata is larger than ${metadataMax} bytes`)
  return { text, flaw: row === given ? types.flaw(row) : 'an id is no UUID' }
}

const ids = ['actor_id', 'account_id', 'target_actor_id', 'target_account_id'] as const
/** Every form that PostgreSQL takes. */
const uuidForm = /^\{?(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}\}?$/i
const isUuid = (id: unknown): boolean => typeof id === 'string' && uuidForm.test(id)

/** The row itself, or without those of its ids that are no UUIDs. */
function withUuids(row: AuditRow & { cell_ids?: unknown }): AuditRow {
  const bad = ids.filter((key) => row[key] != null && !isUuid(row[key]))
  const cell_ids = row.cell_ids ?? []
  const cells = Array.isArray(cell_ids) ? cell_ids.filter(isUuid) : []
  if (bad.length === 0 && cells.length === (cell_ids as unknown[]).length) return row
  return Object.assign({ ...row, cell_ids: cells }, Object.fromEntries(bad.map((key) => [key, null])))
}

function jsonOf(row: AuditRow): string | undefined {
  try {
    return JSON.stringify(row)
  } catch {
    return undefined
  }
}

import { badText, mayHoldBadText } from '../core/issues.ts'
import type { Log } from '../core/log.ts'
import { type Database, type Sql, sql } from '../db/db.ts'
import type { AuditRow } from './audit.ts'
import type { EventTypes } from './event-types.ts'

/**
 * Writes audit rows through one database function whose exception block undoes a failing insert by
 * itself: the mutation goes on, the failure is logged and counted (contract 3, section 8.4 W2).
 */
export type AuditWriter = {
  /** The statement that writes `rows`; it travels with the mutation's COMMIT. */
  statement(rows: readonly AuditRow[]): Sql | undefined
  /** Judges what that statement answered. */
  settle(answer: readonly unknown[]): void
  /** A failure row, outside any transaction (W3); never throws. */
  failure(row: AuditRow): Promise<void>
  /** How many inserts failed since the start. */
  readonly failures: number
  /** How many rows were written although they break a rule of their type since the start. */
  readonly flaws: number
}

/** Bytes of metadata as JSON (contract 3, section 8.1). */
const metadataMax = 8192

export function createAuditWriter(db: Database, log: Log, types: EventTypes): AuditWriter {
  let failures = 0
  let flaws = 0
  const failed = (error: unknown): void => {
    failures += 1
    log.error({ failure: error }, 'an audit row could not be written; the mutation went on without it')
  }
  const toJson = (row: AuditRow): string => {
    const { text, flaw } = rendered(row, types)
    if (flaw !== undefined) {
      flaws += 1
      log.error(
        { event_type: row.event_type, flaw },
        'an audit row breaks the rules of its type; it was written all the same',
      )
    }
    return text
  }
  const statement = (rows: readonly AuditRow[]): Sql | undefined =>
    rows.length === 0
      ? undefined
      : sql`select audit_write(${`[${rows.map(toJson).join(',')}]`}::json) as failure`
  const settle = (answer: readonly unknown[]): void => {
    const failure = (answer[0] as { failure: string | null } | undefined)?.failure
    if (failure) failed(failure)
  }
  return {
    statement,
    settle,
    failure: async (row) => {
      try {
        settle(await db.rows(statement([row]) as Sql))
      } catch (error) {
        failed(error)
      }
    },
    get failures() {
      return failures
    },
    get flaws() {
      return flaws
    },
  }
}

/**
 * The row as JSON that the table takes, and how it breaks the rules of its type. A flaw never keeps a row out:
 * what happened must stand in the log, if need be without its metadata.
 */
function rendered(row: AuditRow, types: EventTypes): { text: string; flaw?: string | undefined } {
  const { metadata } = row
  const text = jsonOf(row)
  const instead = (kept: AuditRow['metadata'], flaw: string) => ({
    text: JSON.stringify({ ...row, metadata: kept }),
    flaw,
  })
  // A consumer's handler may hand over anything.
  if (text === undefined || typeof metadata !== 'object' || Array.isArray(metadata))
    return instead(null, 'the metadata is no object that JSON can say')
  if (mayHoldBadText(text) && badText(metadata))
    return instead(null, 'the metadata holds text that cannot be stored')
  // A unit takes three bytes at most: a row of the usual size needs no second look.
  if (text.length * 3 > metadataMax && Buffer.byteLength(JSON.stringify(metadata)) > metadataMax)
    return instead({ oversize: true }, `the metadata is larger than ${metadataMax} bytes`)
  return { text, flaw: types.flaw(row) }
}

function jsonOf(row: AuditRow): string | undefined {
  try {
    return JSON.stringify(row)
  } catch {
    return undefined
  }
}

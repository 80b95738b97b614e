import type { Log } from '../core/log.ts'
import { type Database, type Sql, sql } from '../db/db.ts'
import type { AuditRow } from './audit.ts'

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
}

export function createAuditWriter(db: Database, log: Log): AuditWriter {
  let failures = 0
  const failed = (error: unknown): void => {
    failures += 1
    log.error({ failure: error }, 'an audit row could not be written; the mutation went on without it')
  }
  const statement = (rows: readonly AuditRow[]): Sql | undefined =>
    rows.length === 0 ? undefined : sql`select audit_write(${JSON.stringify(rows)}::json) as failure`
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
  }
}

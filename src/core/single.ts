import type { Audit, AuditRow } from '../audit/audit.ts'
import type { Pair } from '../audit/write.ts'
import { LastFailed, type Queryable, type Sql, sql, type Transaction } from '../db/db.ts'
import type { App } from './app.ts'

/**
 * Runs a mutation whose work is one statement in one round trip: `statement` is a list of common table expressions,
 * and `result` the name of the one whose first row is returned. The audit rows that `record` records, and those
 * recorded before, are written by the same statement, which then commits. So `record` cannot know what the
 * statement returns: make ids beforehand. Without a row, the statement must have written nothing, nothing is
 * committed, and the work goes on as any other. With a row, nothing that fails afterwards undoes it.
 * If another statement ran before, this is an ordinary one.
 */
export type Single = <T>(
  statement: Sql,
  result: string,
  record: (audit: Audit) => void,
) => Promise<T | undefined>

/** `single` as an ordinary statement, for work within a transaction that goes on. */
export const singleWithin =
  (db: Queryable, audit: Audit): Single =>
  async <T>(statement: Sql, result: string, record: (audit: Audit) => void) => {
    const row = await db.first<T>(sql`with ${statement} select * from ${sql.raw(result)}`)
    if (row) record(audit)
    return row
  }

type Recording = {
  /** What the mutation has recorded. */
  rows: AuditRow[]
  caller: Pair | undefined
  recordIn(rows: AuditRow[]): Audit
}

export function singleOf(app: App, tx: Transaction, { rows, caller, recordIn }: Recording): Single {
  const ordinary = singleWithin(tx, recordIn(rows))
  return async <T>(statement: Sql, result: string, record: (audit: Audit) => void) => {
    if (!tx.mayBeAlone) return await ordinary<T>(statement, result, record)
    const all = [...rows]
    record(recordIn(all))
    // Without a row in `result`, the function is never called; with many, once.
    const query = sql`with ${statement} select *, ${app.audit.expression(all, caller)} as audit_report
      from ${sql.raw(result)} limit 1`
    try {
      const row = await tx.alone<T & { audit_report?: unknown }>(query, app.audit.isToBlame)
      if (!row) return undefined
      rows.splice(0, rows.length, ...all)
      app.audit.settle([{ report: row.audit_report }], rows)
      delete row.audit_report
      return row
    } catch (error) {
      if (error instanceof LastFailed) return await ordinary<T>(statement, result, record)
      throw error
    }
  }
}

import { randomUUID } from 'node:crypto'
import type { Audit, AuditRow } from '../audit/audit.ts'
import type { Pair } from '../audit/write.ts'
import {
  LastFailed,
  type Queryable,
  type SharedWrite,
  type Sql,
  type Stored,
  sql,
  type Transaction,
} from '../db/db.ts'
import { ServiceError } from '../errors.ts'
import type { App } from './app.ts'

/**
 * Runs a mutation that consists of one statement in one round trip. `statement` is a list of common table expressions;
 * the first row of the one named `result` is returned. The same statement writes the audit rows, those recorded before
 * and those of `record`, and commits. `record` runs before it, so make ids beforehand, or take an id that only the
 * statement knows from a column of the result, by `found`. If the result has no row, the statement must not have written
 * anything; the transaction then stays open and the work goes on. If it has one, no later failure undoes the commit.
 * After another statement of the same mutation, this is an ordinary statement.
 */
export type Single = <T, K = unknown>(
  statement: Sql,
  result: string,
  record: (audit: Audit, found: Found) => void,
  /** It may share a statement with its neighbours instead; `found` is not for those. */
  shared?: { write: SharedStatement<K>; key: K },
) => Promise<T | undefined>

/** The UUID in this column of the result, never null. `record` runs a second time once the result is known. */
type Found = (column: string) => string

/**
 * The statement that several calls share: common table expressions, of which `stored` has a row for each key that was
 * written, with `nth`, its place from 1. A key that is left out is tried alone, unless `isFinal`: alone it would be left
 * out too. So that no caller waits long for the others, keys are small, at most `max` share a statement, and its `from`
 * includes `briefly`.
 */
export type SharedStatement<K> = { statement(keys: readonly K[]): Sql; max: number; isFinal?: boolean }

/** `single` as an ordinary statement, for work within a transaction that goes on. */
export const singleWithin =
  (db: Queryable, audit: Audit): Single =>
  async <T>(statement: Sql, result: string, record: (audit: Audit, found: Found) => void) => {
    const row = await db.first<T>(sql`with ${statement} select * from ${sql.raw(result)}`)
    if (row) record(audit, foundIn(row))
    return row
  }

const foundIn =
  (row: unknown): Found =>
  (column) =>
    (row as Record<string, string>)[column] as string

type Recording = {
  /** What the mutation has recorded. */
  rows: AuditRow[]
  caller: Pair | undefined
  recordIn(rows: AuditRow[]): Audit
}

export function singleOf(app: App, tx: Transaction, { rows, caller, recordIn }: Recording): Single {
  const ordinary = singleWithin(tx, recordIn(rows))
  return async <T, K>(
    statement: Sql,
    result: string,
    record: (audit: Audit, found: Found) => void,
    shared?: { write: SharedStatement<K>; key: K },
  ) => {
    if (!tx.mayBeAlone()) return await ordinary<T>(statement, result, record)
    const recorded = (found: Found): AuditRow[] => {
      const all = [...rows]
      record(recordIn(all), found)
      return all
    }
    const { byColumn, found, replaced } = standIns()
    const all = recorded(found)
    if (shared) {
      if (byColumn.size > 0) throw new Error('`found` is not for a statement that others share.')
      const { write, key } = shared
      const row = await tx.share<Entry<K>, Reported<T>>(write, { key, rows: all, caller }, () =>
        audited<K, T>(app, write),
      )
      if (row) {
        rows.splice(0, rows.length, ...all)
        const { nth, audit_report, ...own } = row
        return own as T
      }
      if (write.isFinal) return undefined
    }
    // Without a row in `result`, the function is never called; with many, once.
    const query = sql`with ${statement}
      select *, ${app.audit.expression(all, caller, replaced)} as audit_report from ${sql.raw(result)} limit 1`
    try {
      const row = await tx.alone<T & { audit_report?: unknown }>(query, app.audit.isToBlame)
      if (!row) return undefined
      rows.splice(0, rows.length, ...(byColumn.size > 0 ? recorded(foundIn(row)) : all))
      app.audit.settle([{ report: row.audit_report }], rows)
      delete row.audit_report
      return row
    } catch (error) {
      if (error instanceof LastFailed) return await ordinary<T>(statement, result, record)
      // Perhaps it was committed, and then what it closes must be checked.
      if (error instanceof ServiceError && error.outcome === 'unknown') rows.splice(0, rows.length, ...all)
      throw error
    }
  }
}

/** Random UUIDs that stand for those of the result, which the statement puts in their place. */
function standIns() {
  const byColumn = new Map<string, string>()
  return {
    byColumn,
    found: (column: string): string => {
      const standIn = byColumn.get(column) ?? randomUUID()
      byColumn.set(column, standIn)
      return standIn
    },
    replaced: (text: Sql): Sql =>
      [...byColumn].reduce(
        (text, [column, standIn]) => sql`replace(${text}, ${standIn}, ${sql.raw(column)}::text)`,
        text,
      ),
  }
}

type Entry<K> = { key: K; rows: readonly AuditRow[]; caller: Pair | undefined }
type Reported<T> = T & Stored & { audit_report?: unknown }

/** The shared statement with the audit rows of what it stores. */
const audited = <K, T>(
  app: App,
  { statement, max }: SharedStatement<K>,
): SharedWrite<Entry<K>, Reported<T>> => ({
  max,
  statement: (entries) => sql`
    with ${statement(entries.map(({ key }) => key))}
    select *, ${app.audit.shared(entries, sql`stored`)} as audit_report from stored order by nth`,
  stored: (rows, entries) => {
    const written = rows.flatMap(({ nth }) => entries[nth - 1]?.rows ?? [])
    if (rows[0]) app.audit.settle([{ report: rows[0].audit_report }], written)
  },
})

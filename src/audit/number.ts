import { type Database, sql } from '../db/db.ts'

const numberedMax = 10_000

/**
 * Numbers committed rows in the order in which they became visible.
 * Readers of the log call this first so that callers see their own writes.
 */
export async function numberRows(db: Pick<Database, 'first' | 'readOnly'>): Promise<void> {
  for (;;) {
    // `order by` makes the planner use the partial index of unnumbered rows.
    const waiting = await db.readOnly.first(
      sql`select written from audit_log where seq is null order by written limit 1`,
    )
    if (!waiting) return
    await db.first(sql`select audit_number(${sql.raw(numberedMax)})`)
  }
}

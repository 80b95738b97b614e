import { type Database, sql } from '../db/db.ts'

const numberedMax = 10_000

/**
 * Gives committed rows their number, in the order in which they became visible.
 * Whoever reads the log does this first, so that a caller finds what it was answered for.
 */
export async function numberRows(db: Pick<Database, 'first' | 'readOnly'>): Promise<void> {
  for (;;) {
    // The order keeps the planner on the partial index of rows without a number.
    const waiting = await db.readOnly.first(
      sql`select written from audit_log where seq is null order by written limit 1`,
    )
    if (!waiting) return
    await db.first(sql`select audit_number(${sql.raw(numberedMax)})`)
  }
}

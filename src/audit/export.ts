import { z } from 'zod'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { Int, Uuid } from '../core/wire.ts'
import { type Database, type Sql, sql } from '../db/db.ts'
import type { AuditRow } from './audit.ts'

/** A numbered row as it is shown: these 11 keys in this order (contract 3, section 8.1). */
export type AuditEvent = { id: string; seq: number; created_at: string } & AuditRow

const columns = sql`id, seq, event_type, outcome, actor_id, account_id, target_account_id, target_actor_id, ip,
  created_at, metadata`

const Filter = z.strictObject({
  /** Only rows after this one; the `last_seq` of an export before goes on where that one ended. */
  since_seq: Int(0, Number.MAX_SAFE_INTEGER).optional(),
  until_seq: Int(0, Number.MAX_SAFE_INTEGER).optional(),
  event_type: z
    .string()
    .max(128)
    .regex(/^[A-Za-z][A-Za-z0-9_./-]*$/)
    .optional(),
  outcome: z.enum(['success', 'failure']).optional(),
  /** As the one who acted or the one acted upon. */
  account_id: Uuid.optional(),
})
export type AuditFilter = z.input<typeof Filter>

/** Rows held in memory at a time. */
const batch = 1000

/**
 * Every settled row in rising `seq`, a batch at a time (contract 3, section 8.9). Numbers what was committed
 * before the call first, so the caller's own answered mutations are in it.
 */
export async function exportAudit(app: App, filter: AuditFilter = {}): Promise<AsyncIterable<AuditEvent>> {
  return rowsOf(app.db, parseInput(Filter, filter))
}

async function* rowsOf(db: Database, filter: z.output<typeof Filter>): AsyncGenerator<AuditEvent> {
  await numberRows(db)
  for (let since = filter.since_seq ?? 0; ; ) {
    const rows = await db.rows<AuditEvent>(sql`
      select ${columns} from audit_log where ${conditions(filter, since)}
      order by seq limit ${sql.raw(batch)}`)
    yield* rows
    const last = rows.at(-1)
    if (!last || rows.length < batch) return
    since = last.seq
  }
}

function conditions(
  { until_seq, event_type, outcome, account_id }: z.output<typeof Filter>,
  since: number,
): Sql {
  const given = [sql`seq > ${since}::bigint`]
  if (until_seq !== undefined) given.push(sql`seq <= ${until_seq}::bigint`)
  if (event_type !== undefined) given.push(sql`event_type = ${event_type}`)
  if (outcome !== undefined) given.push(sql`outcome = ${outcome}`)
  if (account_id !== undefined)
    given.push(sql`(account_id = ${account_id}::uuid or target_account_id = ${account_id}::uuid)`)
  return sql.join(given, ' and ')
}

const numberedMax = 10_000

/** Gives committed rows their number, in the order in which they became visible (contract 3, section 8.6). */
export async function numberRows(db: Database): Promise<void> {
  for (;;) {
    // The order keeps the planner on the partial index of rows without a number.
    const waiting = await db.first(
      sql`select written from audit_log where seq is null order by written limit 1`,
    )
    if (!waiting) return
    await db.first(sql`select audit_number(${sql.raw(numberedMax)})`)
  }
}

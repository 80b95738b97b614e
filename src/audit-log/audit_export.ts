import { z } from 'zod'
import { type AuditEvent, auditColumns, EventType } from '../audit/entry.ts'
import { numberForReading, partsOf, rowOf, type Stretch, seqEnd } from '../audit/numbering.ts'
import type { App } from '../core/app.ts'
import { operation } from '../core/operation.ts'
import { type Database, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { meant } from '../wire/closest.ts'
import { issue } from '../wire/issues.ts'
import { Int, Uuid } from '../wire/types.ts'
import { numbersOf, selection } from './selection.ts'

const Filter = z.strictObject({
  /** Only rows after this one; the `last_seq` of an earlier export continues where it ended. */
  since_seq: Int(0, Number.MAX_SAFE_INTEGER).optional(),
  until_seq: Int(0, Number.MAX_SAFE_INTEGER).optional(),
  event_type: EventType.optional(),
  outcome: z.enum(['success', 'failure']).optional(),
  /** The account that acted, or the target. */
  account_id: Uuid.optional(),
})
export type AuditFilter = z.input<typeof Filter>

/** Rows held in memory at a time. */
const batch = 1000

/**
 * Every numbered row in rising `seq`, a batch at a time. Numbers committed rows first so that callers see their
 * own writes.
 */
export const exportAudit = operation({
  doc: 'Export the audit log, oldest first.',
  input: Filter,
  handler: async (filter, { app }): Promise<AsyncIterable<AuditEvent>> => {
    if (filter.event_type !== undefined) await refuseUnknown(app, filter.event_type)
    return rowsOf(app.db, filter)
  },
  command: {
    name: 'audit export',
    args: {
      since_seq: '--since-seq N',
      until_seq: '--until-seq N',
      event_type: '--event-type TYPE',
      outcome: '--outcome OUTCOME',
      account_id: '--account UUID',
    },
    details:
      '--out writes to a new file that only its owner can read, instead of standard output. A run that fails, or that\nCtrl-C or SIGTERM ends, leaves no file.',
    // Without a row too, since scripts pass it on as the next --since-seq.
    lines: (last, { since_seq = 0 }) => ({ last_seq: last?.seq ?? since_seq }),
  },
})

/** Refuses a type that is not declared, unless the log still has rows from a time when it was. */
async function refuseUnknown({ db, registry }: App, type: string): Promise<void> {
  if (registry.events.has(type)) return
  const { known } = await db.one<{ known: boolean }>(sql`
    select exists (select from audit_log where event_type = ${type})
      or exists (select from audit_inbox where event_type = ${type}) as known`)
  if (known) return
  const what = `No such type is declared, and the log has no row of it${meant(type, registry.events.names, '.')}`
  throw refusal('invalid_params', { issues: [issue(['event_type'], 'invalid_value', what)] })
}

async function* rowsOf(db: Database, filter: z.output<typeof Filter>): AsyncGenerator<AuditEvent> {
  const position = await numberForReading(db)
  const reads = db.replicas?.reads() ?? db.readOnly
  const { event_type, until_seq = seqEnd - 1, ...others } = filter
  const all: Stretch = { direction: 'asc', from: filter.since_seq ?? 0, to: until_seq + 1 }
  const selected = await selection(reads, { ...others, event_types: event_type ? [event_type] : null }, all)
  for (const part of partsOf(all, position))
    for (let { from } = part; ; ) {
      const rest = { ...part, from }
      const rows = await reads.rows<AuditEvent>(sql`
        with next as (${numbersOf(selected, rest, batch)})
        select ${auditColumns} from next cross join lateral (${rowOf(sql`next.seq`, rest)}) l
        order by l.seq`)
      yield* rows
      const last = rows.at(-1)
      if (!last || rows.length < batch) break
      from = last.seq
    }
}

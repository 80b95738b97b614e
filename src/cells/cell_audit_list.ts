import { z } from 'zod'
import { numberRows } from '../audit/number.ts'
import { query } from '../core/action.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { me, tier } from './access.ts'

/** The newest events that are listed; there are no pages. */
export const CELL_AUDIT_LIST_DEFAULT_LIMIT = 50

/** What the timeline of a cell shows of an audit row: who did what when, and not to which other cell. */
const CellAuditEvent = z.object({
  id: Uuid,
  seq: z.int(),
  event_type: z.string(),
  outcome: z.enum(['success', 'failure']),
  actor_id: Uuid.nullable(),
  created_at: z.string(),
})
type CellAuditEvent = z.output<typeof CellAuditEvent>

export const cell_audit_list = query({
  doc: 'The newest 50 audit events that name a cell, for those who manage it; of a deleted cell for admins.',
  auth: { account: 'required', actor: 'required' },
  input: z.strictObject({ cell_id: Uuid }),
  output: z.object({ events: z.array(CellAuditEvent) }),
  errors: ['cell_not_found'],
  async handler({ cell_id }, { app, account, actor, db, fail }) {
    // What the caller was answered for is in it.
    await app.gate.run(account.id, () => numberRows(app.db))
    const rows = await db.rows<Partial<CellAuditEvent>>(sql`
      with ${me(actor.id)}, anchor as (
        select c.id from cell c, me where c.id = ${cell_id}::uuid and (${tier.manage} or me.is_admin)
      )
      select e.* from anchor left join lateral (
        select l.id, l.seq, l.event_type, l.outcome, l.actor_id, l.created_at
        from audit_cell m join audit_log l on l.seq = m.seq and l.seq is not null
        where m.cell_id = anchor.id
        order by m.seq desc limit ${sql.raw(CELL_AUDIT_LIST_DEFAULT_LIMIT)}
      ) e on true
      order by e.seq desc`)
    if (rows.length === 0) throw fail('cell_not_found')
    return { events: rows.filter((row): row is CellAuditEvent => row.id !== null) }
  },
})

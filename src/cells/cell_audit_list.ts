import { z } from 'zod'
import { auditJson } from '../audit/entry.ts'
import {
  inside,
  numberForReading,
  partsOf,
  readApart,
  rowOf,
  type Stretch,
  seqEnd,
} from '../audit/numbering.ts'
import { query } from '../core/declare.ts'
import { type Sql, sql } from '../db/db.ts'
import { jsonObject } from '../db/json.ts'
import { Uuid } from '../wire/types.ts'
import { me, tier } from './access.ts'

/** How many events are listed, newest first. There are no further pages. */
const CELL_AUDIT_LIST_DEFAULT_LIMIT = 50

/** What a cell's timeline shows of an audit row: who did what and when, but not which other cells it names. */
const CellAuditEvent = z.object({
  id: Uuid,
  seq: z.int(),
  event_type: z.string(),
  outcome: z.enum(['success', 'failure']),
  actor_id: Uuid.nullable(),
  created_at: z.string(),
})

export const cell_audit_list = query({
  doc: 'The newest 50 audit events that name a cell. Needs the manage tier; for a deleted cell, the admin role.',
  auth: { account: 'required', actor: 'required' },
  replica: true,
  input: z.strictObject({ cell_id: Uuid }),
  output: z.object({ events: z.array(CellAuditEvent) }),
  json_text: true,
  errors: ['cell_not_found'],
  async handler({ cell_id }, { app, account, actor, db, fail }) {
    // Number rows first so that callers see their own writes.
    const position = await app.gate.run(account.id, () => numberForReading(app.db))
    const whole: Stretch = { direction: 'desc', from: 0, to: seqEnd }
    const [part = whole, older] = partsOf(whole, position)
    const anchor = sql`
      with ${me(actor.id)}, anchor as (
        select c.id from cell c, me where c.id = ${cell_id}::uuid and (${tier.manage} or me.is_admin)
      )`
    const rows = await db.rows<{ event: string | null }>(sql`
      ${anchor} select e.* from anchor left join lateral (
        ${rowsOf(newest(part), part)}
      ) e on true
      order by e.seq desc`)
    if (rows.length === 0) throw fail('cell_not_found')
    const events = rows.flatMap(({ event }) => event ?? [])
    if (older && events.length < CELL_AUDIT_LIST_DEFAULT_LIMIT) {
      const numbers = sql`${anchor} select m.seq from anchor cross join lateral (${newest(older)}) m`
      const more = await readApart<{ event: string }>(db, numbers, older, rowsOf)
      events.push(...more.map(({ event }) => event))
    }
    return ['{"events":[', events.slice(0, CELL_AUDIT_LIST_DEFAULT_LIMIT).join(','), ']}']
  },
})

const { id, seq, event_type, outcome, actor_id, created_at } = auditJson
const text = jsonObject('l', { id, seq, event_type, outcome, actor_id, created_at })

/** The newest numbers of the timeline of `anchor`. */
const newest = (part: Stretch): Sql => sql`
  select m.seq from audit_cell m
  where m.cell_id = anchor.id and ${part.isNarrow ? inside(sql`m.seq`, part) : sql`m.seq < ${part.to}::bigint`}
  order by m.seq desc limit ${sql.raw(CELL_AUDIT_LIST_DEFAULT_LIMIT)}`

const rowsOf = (numbers: Sql, part: Stretch): Sql => sql`
  select l.seq, ${text} as event from (${numbers}) m cross join lateral (${rowOf(sql`m.seq`, part)}) l order by l.seq desc`

import { z } from 'zod'
import { query } from '../core/declare.ts'
import { boundedCount, countedMax } from '../db/bounded-count.ts'
import { type Sql, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { me, tier } from './access.ts'
import { type Edges, fieldEdges, itemEdges, visibleEdges } from './edges/edges.ts'

const Preview = z.object({
  /** Cells that link to it by a field or an item. */
  linked_from: z.int(),
  fields: z.int(),
  items: z.int(),
  /** Null if the caller may not list them. */
  grants: z.int().nullable(),
})

export const cell_delete_preview = query({
  doc: 'What deleting the cell would cut off, as far as the caller may see it. Each count goes up to 1000. Needs the edit tier, as deleting does.',
  auth: { account: 'required', actor: 'required' },
  rate_limit: 'account',
  rate_limit_group: 'lookup',
  input: z.strictObject({ cell_id: Uuid }),
  output: Preview,
  errors: ['cell_not_found'],
  async handler({ cell_id }, { actor, db, fail }) {
    const found = await db.first<z.output<typeof Preview>>(sql`
      with ${me(actor.id)}, anchor as (
        select c.id, ${tier.manage} as manages from cell c, me where c.id = ${cell_id}::uuid and ${tier.edit}
      )
      select ${counted(
        sql`select cell_id from (${leadingTo(fieldEdges)}) f union select cell_id from (${leadingTo(itemEdges)}) i`,
      )} as linked_from, ${counted(leadingFrom(fieldEdges))} as fields, ${counted(leadingFrom(itemEdges))} as items,
        case when manages then ${boundedCount(sql`select from cell_grant where cell_id = anchor.id`)} end as grants
      from anchor`)
    if (!found) throw fail('cell_not_found')
    return found
  },
})

/** Leaves out the row that marks where the examined edges end. */
const counted = (ends: Sql): Sql => boundedCount(sql`select from (${ends}) e where e.cell_id is not null`)

const leadingFrom = (edges: Edges): Sql => sql`
  select ${sql.raw(edges.to)} as cell_id from (${visibleEdges(edges, { anchor: sql`anchor.id`, size: countedMax })}) e`

const leadingTo = (edges: Edges): Sql => sql`
  select case when ${sql.raw(edges.to)} is not null then ${sql.raw(edges.from)} end as cell_id
  from (${visibleEdges(edges, { anchor: sql`anchor.id`, isReverse: true, size: countedMax })}) e`

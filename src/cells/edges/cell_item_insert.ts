import { z } from 'zod'
import type { Audit } from '../../audit/audit.ts'
import { mutation } from '../../core/declare.ts'
import { sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { Item, itemEdges, Position } from './edges.ts'
import { isNearlyFull, makeRoom } from './room.ts'
import { addAtOnce, endsOf, lockAnchor, placeItem, placing } from './write.ts'

export const cell_item_insert = mutation({
  doc: 'Insert a cell that the caller may view at a free position of another cell.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_item_insert',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ parent_id: Uuid, child_id: Uuid, position: Position }),
  output: z.object({ item: Item }),
  errors: ['cell_not_found', 'cell_item_position_taken', 'cell_edges_full'],
  async handler({ parent_id, child_id, position }, { app, actor, db, single, audit, fail }) {
    app.disk.admit()
    const max = app.config.max_cell_edges
    const link = { actor_id: actor.id, anchor_id: parent_id, far_id: child_id, key: position, max }
    const record = (write: Audit) => write('cell_item_insert', { parent_id, position, child_id })
    const inserted = await insertAtOnce(single, link, record)
    if (inserted) return { item: inserted }

    const isFull = sql`${isNearlyFull(itemEdges, max)} as is_nearly_full`
    const locked = await lockAnchor<{ is_nearly_full: boolean }>(db, link, isFull)
    if (!locked) throw fail('cell_not_found')
    if (locked.is_nearly_full) await makeRoom(db, itemEdges, link)
    const item = await placeItem(db, sql`${endsOf(link)}, ${inserting}`)
    record(audit)
    return { item }
  },
})

const inserting = sql`item as (
  select anchor_id as parent_id, key as position, far_id as child_id, now() as created_at from ends
), ${placing}`

const insertAtOnce = addAtOnce<Item>(itemEdges, inserting)

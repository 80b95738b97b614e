import { z } from 'zod'
import { mutation } from '../../core/action.ts'
import { sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { me } from '../access.ts'
import { Item, itemEdges, linkable, Position } from './edges.ts'
import { isNearlyFull, makeRoom } from './room.ts'
import { placeItem } from './write.ts'

export const cell_item_insert = mutation({
  doc: 'Insert a cell that the caller may view at a free position of another cell.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_item_insert',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ parent_id: Uuid, child_id: Uuid, position: Position }),
  output: z.object({ item: Item }),
  errors: ['cell_not_found', 'cell_item_position_taken', 'cell_edges_full'],
  async handler({ parent_id, child_id, position }, { app, actor, db, audit, fail }) {
    const ends = linkable(parent_id, child_id)
    app.disk.admit()
    const max = app.config.max_cell_edges
    const locked = await db.first<{ is_nearly_full: boolean }>(sql`
      with ${me(actor.id)} select ${isNearlyFull(itemEdges, max)} as is_nearly_full from cell c, cell far, me where ${ends} for share of c`)
    if (!locked) throw fail('cell_not_found')
    if (locked.is_nearly_full && max !== null)
      await makeRoom(db, itemEdges, { anchor_id: parent_id, key: position, max })
    const item = await placeItem(db, actor.id, {
      item: sql`select c.id as parent_id, far.id as child_id, now() as created_at from cell c, cell far, me where ${ends}`,
      position,
    })
    audit('cell_item_insert', { parent_id, position, child_id })
    return { item }
  },
})

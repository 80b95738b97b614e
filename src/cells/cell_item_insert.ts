import { z } from 'zod'
import { mutation } from '../core/action.ts'
import { Uuid } from '../core/wire.ts'
import { sql } from '../db/db.ts'
import { me } from './access.ts'
import { placeItem } from './edge-write.ts'
import { Item, linkable, Position } from './edges.ts'

export const cell_item_insert = mutation({
  doc: 'Put a cell that the caller may view at a free position of another one.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_item_insert',
  input: z.strictObject({ parent_id: Uuid, child_id: Uuid, position: Position }),
  output: z.object({ item: Item }),
  errors: ['cell_not_found', 'cell_item_position_taken'],
  async handler({ parent_id, child_id, position }, { actor, db, audit, fail }) {
    const ends = linkable(parent_id, child_id)
    const locked = await db.first(sql`
      with ${me(actor.id)} select c.id from cell c, cell far, me where ${ends} for share of c`)
    if (!locked) throw fail('cell_not_found')
    const item = await placeItem(db, actor.id, {
      item: sql`select c.id as parent_id, far.id as child_id, now() as created_at from cell c, cell far, me where ${ends}`,
      position,
    })
    audit('cell_item_insert', { parent_id, position, child_id })
    return { item }
  },
})

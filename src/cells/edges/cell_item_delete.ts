import { z } from 'zod'
import { mutation } from '../../core/declare.ts'
import { Uuid } from '../../wire/types.ts'
import { itemEdges, Position } from './edges.ts'
import { removeEdge } from './write.ts'

export const cell_item_delete = mutation({
  doc: 'Remove the item at a position of a cell; `deleted` is false if there is none.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_item_delete',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ parent_id: Uuid, position: Position }),
  output: z.object({ ok: z.literal(true), deleted: z.boolean() }),
  errors: ['cell_not_found'],
  async handler({ parent_id, position }, { actor, ...work }) {
    const at = { actor_id: actor.id, anchor_id: parent_id, key: position }
    const child_id = await removeEdge(work, itemEdges, at, (audit, child_id) =>
      audit('cell_item_delete', { parent_id, position, child_id }),
    )
    return { ok: true as const, deleted: child_id !== null }
  },
})

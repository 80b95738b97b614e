import { z } from 'zod'
import { mutation } from '../../core/declare.ts'
import { Uuid } from '../../wire/types.ts'
import { FieldName, fieldEdges } from './edges.ts'
import { removeEdge } from './write.ts'

export const cell_field_delete = mutation({
  doc: 'Remove a field from a cell; `deleted` is false if there is none.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_field_delete',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ source_id: Uuid, name: FieldName }),
  output: z.object({ ok: z.literal(true), deleted: z.boolean() }),
  errors: ['cell_not_found'],
  async handler({ source_id, name }, { actor, ...work }) {
    const at = { actor_id: actor.id, anchor_id: source_id, key: name }
    const target_id = await removeEdge(work, fieldEdges, at, (audit, target_id) =>
      audit('cell_field_delete', { source_id, name, target_id }),
    )
    return { ok: true as const, deleted: target_id !== null }
  },
})

import { z } from 'zod'
import { query } from '../../core/declare.ts'
import { sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { me, tier } from '../access.ts'
import { cellsToClone } from './walk.ts'

export const cell_clone_preview = query({
  doc: 'What `cell_clone` would copy now: cells, edges, bytes of data, and levels below the source. Hooks and quota are not checked.',
  auth: { account: 'required', actor: 'required' },
  rate_limit: 'account',
  rate_limit_group: 'cell_create',
  input: z.strictObject({ source_id: Uuid, deep: z.boolean().default(false) }),
  output: z.object({ cells: z.int(), edges: z.int(), bytes: z.int(), depth: z.int() }),
  errors: ['cell_not_found', 'cell_clone_too_large'],
  async handler({ source_id, deep }, { app, actor, db, fail }) {
    const root = await db.first<{ id: string; bytes: number }>(sql`
      with ${me(actor.id)}
      select c.id, c.data_bytes as bytes from cell c, me where c.id = ${source_id}::uuid and ${tier.view}`)
    if (!root) throw fail('cell_not_found')
    const edgesOfCellMax = app.config.max_cell_edges
    const { ids, edges, bytes, depth } = await cellsToClone(db, actor.id, root, { deep, edgesOfCellMax })
    return { cells: ids.length, edges, bytes, depth }
  },
})

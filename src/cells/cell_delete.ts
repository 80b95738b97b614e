import { z } from 'zod'
import { mutation } from '../core/action.ts'
import { sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'
import { me, tier } from './access.ts'

export const cell_delete = mutation({
  doc: 'Delete a cell permanently. Its path is free at once; its edges and grants are no longer reachable.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_delete',
  rate_limit: 'account',
  rate_limit_group: 'cell_write',
  input: z.strictObject({ cell_id: Uuid }),
  output: z.object({ ok: z.literal(true), deleted: z.literal(true) }),
  errors: ['cell_not_found'],
  async handler({ cell_id }, { actor, db, audit, fail }) {
    const locked = await db.first(sql`
      with ${me(actor.id)}
      select c.id from cell c, me where c.id = ${cell_id}::uuid and ${tier.edit} for no key update of c`)
    if (!locked) throw fail('cell_not_found')
    const deleted = await db.run(sql`
      with ${me(actor.id)}
      update cell c set deleted_at = greatest(statement_timestamp(), c.created_at)
      from me where c.id = ${cell_id}::uuid and ${tier.edit}`)
    if (deleted === 0) throw fail('cell_not_found')
    audit('cell_delete', { cell_id })
    return { ok: true as const, deleted: true as const }
  },
})

import { z } from 'zod'
import { query } from '../../core/declare.ts'
import { closePage, keyset, openPage, pageInput } from '../../core/page.ts'
import { sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { me, tier } from '../access.ts'
import { CellGrant, grantJson } from './grants.ts'

export const cell_grant_list = query({
  doc: 'The grants of a cell, oldest first. Needs the manage tier.',
  auth: { account: 'required', actor: 'required' },
  input: z.strictObject({ cell_id: Uuid, ...pageInput(500, 100) }),
  output: z.object({ grants: z.array(CellGrant), next_cursor: z.string().nullable() }),
  errors: ['cell_not_found'],
  refine({ cell_id, ...sent }, { app, actor }) {
    return { cell_id, page: openPage(app, 'cell_grant_list', { cell_id, actor: actor.id }, sent) }
  },
  async handler({ cell_id, page }, { app, actor, db, fail }) {
    const { beyond, inOrder, limited } = keyset(page, { 'g.created_at': 'timestamptz', 'g.id': 'uuid' })
    const found = await db.rows<{ grant: CellGrant | null }>(sql`
      with ${me(actor.id)}, anchor as (
        select c.id from cell c, me where c.id = ${cell_id}::uuid and ${tier.manage}
      )
      select case when g.id is not null then ${grantJson('g')} end as grant
      from anchor left join lateral (
        select * from cell_grant g where g.cell_id = anchor.id and ${beyond} ${inOrder} ${limited}
      ) g on true
      ${inOrder}`)
    if (found.length === 0) throw fail('cell_not_found')
    const grants = found.flatMap(({ grant }) => grant ?? [])
    const { rows, next_cursor } = closePage(app, page, grants, ({ created_at, id }) => [created_at, id])
    return { grants: rows, next_cursor }
  },
})

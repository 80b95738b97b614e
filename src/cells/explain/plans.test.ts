import { expect, test as it } from 'vitest'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'

const test = await serviceForFile()

it('near misses do not read the grants of a cell that name actors, and cost a viewer nothing', async () => {
  const [owner, viewer] = await Promise.all([test.account(), test.account()])
  await test.roleGrant({ actor_id: viewer.actor_id, role: 'elsewhere' })
  const { id: crowd } = await test.account()
  const cell_id = await cellRow(test, { created_by: owner.actor_id })
  const { db } = test.service.app
  await db.run(sql`
    with one as (
      insert into actor (account_id, name, name_key)
      select ${crowd}::uuid, 'one ' || n, 'one ' || n from generate_series(1, 3000) n returning id
    )
    insert into cell_grant (cell_id, level, actor_id, cell_created_at)
    select ${cell_id}::uuid, 'viewer', id, now() from one`)
  for (let n = 1; n <= 100; n++) await test.cellGrant(cell_id, 'viewer', { role: `r ${n}`, scope_id: null })
  await test.cellGrant(cell_id, 'viewer', { actor_id: viewer.actor_id })
  await db.run(sql`analyze cell_grant, cell`)
  for (const [{ client }, most] of [
    [owner, 130],
    [viewer, 20],
  ] as const) {
    const work = await workOf(test.databaseUrl, () =>
      client.cell_access_explain({ cell_id, actor_id: viewer.actor_id }),
    )
    expect(work.scanned).not.toContain('cell_grant')
    expect(work.rows.cell_grant).toBeLessThanOrEqual(most)
  }
})

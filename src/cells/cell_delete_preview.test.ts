import { expect, it } from 'vitest'
import { graph } from '../../test/helpers/cell-graphs.ts'
import { cellRow, grantRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { countedMax } from '../db/bounded-count.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ limit_lookup: 'off' })
const [ada, bob] = await Promise.all([test.account(), test.account()])
const preview = (id: string | undefined, by: TestAccount = ada) =>
  by.client.cell_delete_preview({ cell_id: id as string })
const hidden = { created_by: null }

it('counts the cells that lead there, its own edges and its grants, but nothing that the caller may not see', async () => {
  const { me, ...others } = await graph(
    test,
    ada.actor_id,
    [
      'a next me',
      'a #1 me',
      'b next me',
      'secret next me',
      'gone next me',
      'me up x',
      'me down secret',
      'me #1 x',
      'me #2 y',
      'me #3 me',
    ],
    { secret: hidden, gone: { deleted_at: '2026-01-01T00:00:00Z' } },
  )
  expect(Object.keys(others)).toContain('secret')
  for (const role of ['one', 'two']) await grantRow(test, me as string, 'viewer', { role })
  // Its third item leads to itself, so it counts among the cells that link to it.
  expect(await scenario(test, () => preview(me))).toEqual({ linked_from: 3, fields: 1, items: 3, grants: 2 })
})

it('needs the right to delete, and shows the number of grants to managers alone', async () => {
  const id = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
  expect(await reasonOf(preview(id, bob))).toBe('cell_not_found')
  expect(await reasonOf(preview(crypto.randomUUID()))).toBe('cell_not_found')
  expect(await reasonOf(test.client().cell_delete_preview({ cell_id: id }))).toBe('authentication_required')
  await grantRow(test, id, 'editor', { actor_id: bob.actor_id })
  expect(await preview(id, bob)).toEqual({ linked_from: 0, fields: 0, items: 0, grants: null })
  expect(await preview(id)).toMatchObject({ grants: 1 })
})

it(`counts to ${countedMax} and reads little more`, async () => {
  const id = await cellRow(test, { created_by: ada.actor_id })
  await test.service.app.db.run(sql`
    with made as (
      insert into cell (data, data_bytes, created_by) select '{}', 2, ${ada.actor_id}::uuid
      from generate_series(1, 5000) returning id
    ), fields as (
      insert into cell_field (source_id, name, target_id) select id, 'up', ${id}::uuid from made
    ), grants as (
      insert into cell_grant (cell_id, level, role, scope_id, cell_created_at)
      select ${id}::uuid, 'viewer', 'many', id, now() from made
    )
    insert into cell_item (parent_id, position, child_id)
    select ${id}::uuid, lpad((row_number() over ())::text, 5, '0'), id from made`)
  for (const table of ['cell', 'cell_field', 'cell_item', 'cell_grant'])
    await test.service.app.db.run(sql`vacuum analyze ${sql.raw(table)}`)
  const full = { linked_from: countedMax, fields: 0, items: countedMax, grants: countedMax }
  expect(await preview(id)).toEqual(full)
  const { scanned, rows } = await workOf(test.databaseUrl, () => preview(id))
  expect(scanned).toEqual([])
  expect(rows.cell).toBeLessThan(2 * countedMax + 100)
  expect(rows.cell_grant).toBeLessThanOrEqual(countedMax + 1)
})

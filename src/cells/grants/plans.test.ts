import { expect, test as it } from 'vitest'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'

const test = await serviceForFile()
const ada = await test.account()
const own = () => cellRow(test, { created_by: ada.actor_id })

it('a page of grants reads no grants of other cells and none before the page', async () => {
  const cell_id = await own()
  const { db } = test.service.app
  await db.run(sql`
    insert into cell_grant (cell_id, level, role, cell_created_at, created_at)
    select id, 'viewer', 'r' || n, created_at, created_at + n * interval '1 second'
    from cell, generate_series(1, 3000) n where id = ${cell_id}`)
  for (let i = 0; i < 3; i++)
    await db.run(sql`
      insert into cell_grant (cell_id, level, role, cell_created_at)
      select ${await own()}::uuid, 'viewer', 'r' || n, now() from generate_series(1, 3000) n`)
  await db.run(sql`analyze cell_grant, cell`)
  let { next_cursor } = await ada.client.cell_grant_list({ cell_id, limit: 500 })
  ;({ next_cursor } = await ada.client.cell_grant_list({ cell_id, limit: 500, cursor: next_cursor }))
  const work = await workOf(test.databaseUrl, () =>
    ada.client.cell_grant_list({ cell_id, limit: 20, cursor: next_cursor }),
  )
  expect(work.scanned).not.toContain('cell_grant')
  expect(work.rows.cell_grant).toBeLessThanOrEqual(30)
})

it('a timeline reads its own events and no others, however many there are', async () => {
  const { cell } = await ada.client.cell_create({ data: {} })
  const quiet = await own()
  await test.service.app.db.run(sql`
    select audit_write((select json_agg(json_build_object('event_type', 'many', 'outcome', 'success',
      'metadata', json_build_object('cell_id', gen_random_uuid()))) from generate_series(1, 20000)))`)
  for (let n = 0; n < 60; n++) await ada.client.cell_update({ cell_id: cell.id, data: { n } })
  await ada.client.cell_audit_list({ cell_id: cell.id })
  await test.service.app.db.run(sql`analyze audit_log, audit_cell`)
  for (const [cell_id, most] of [
    [cell.id, 120],
    [quiet, 2],
  ] as const) {
    const work = await workOf(test.databaseUrl, () => ada.client.cell_audit_list({ cell_id }))
    expect(work.scanned).not.toContain('audit_log')
    expect(work.scanned).not.toContain('audit_cell')
    expect(work.rows.audit_log ?? 0).toBeLessThanOrEqual(most)
    expect(work.rows.audit_cell ?? 0).toBeLessThanOrEqual(most)
  }
})

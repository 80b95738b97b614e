import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { cellRow, cellRows, fieldRow, grantRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'

const test = await serviceForFile({ cell_tombstone_retention_days: 30 })
const [ada, root] = await Promise.all([test.account(), test.account({ roles: ['admin'] })])
beforeEach(() => cleanUp())

const db = () => test.service.app.db
const cleanUp = async (by = test) => (await by.service.operations.cleanUp()).removed_cells
const ago = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
const exists = async (id: string) => (await db().rows(sql`select from cell where id = ${id}`)).length === 1

it('removes cells deleted longer ago than the days that are set, and no live or younger one', async () => {
  const [old, young, live] = [
    await cellRow(test, { deleted_at: ago(31) }),
    await cellRow(test, { deleted_at: ago(29) }),
    await cellRow(test, { created_at: ago(1000) }),
  ]
  // No audit row: these cells were already deleted for everyone.
  expect(await scenario(test, () => cleanUp())).toBe(1)
  expect([await exists(old), await exists(young), await exists(live)]).toEqual([false, true, true])
})

it('is off unless it is set', async () => {
  const node = await testService({ database_url: test.databaseUrl })
  const old = await cellRow(test, { deleted_at: ago(40_000) })
  expect(await cleanUp(node)).toBe(0)
  expect(await exists(old)).toBe(true)
  await node.close()
})

it('takes edges, grants and the timeline along, but neither the far cells nor the audit log', async () => {
  const { cell } = await ada.client.cell_create({ data: {} })
  const far = await cellRow(test, { created_by: ada.actor_id })
  await fieldRow(test, cell.id, 'to', far)
  await fieldRow(test, far, 'from', cell.id)
  await itemRow(test, far, '1', cell.id)
  await itemRow(test, cell.id, '1', far)
  await grantRow(test, cell.id, 'viewer', { actor_id: root.actor_id })
  await ada.client.cell_delete({ cell_id: cell.id })
  expect((await root.client.cell_audit_list({ cell_id: cell.id })).events).toHaveLength(2)
  await db().run(sql`update cell set deleted_at = ${ago(31)}::timestamptz, created_at = ${ago(31)}::timestamptz
    where id = ${cell.id}`)
  expect(await cleanUp()).toBe(1)
  const left = await db().first(sql`
    select (select count(*) from cell_field where ${cell.id} in (source_id, target_id)) as fields,
      (select count(*) from cell_item where ${cell.id} in (parent_id, child_id)) as items,
      (select count(*) from cell_grant where cell_id = ${cell.id}) as grants,
      (select count(*) from audit_cell where cell_id = ${cell.id}) as timeline,
      (select count(*) from audit_entries() where metadata ->> 'cell_id' = ${cell.id}) as log`)
  expect(left).toEqual({ fields: 0, items: 0, grants: 0, timeline: 0, log: 2 })
  expect(await exists(far)).toBe(true)
  expect(await reasonOf(root.client.cell_audit_list({ cell_id: cell.id }))).toBe('cell_not_found')
})

it('deletes no more than thousands of edges in one statement, however many lead to a cell', async () => {
  const [popular, parent] = [await cellRow(test, { deleted_at: ago(31) }), await cellRow(test)]
  const spared = await cellRow(test)
  await db().run(sql`
    insert into cell_item (parent_id, position, child_id)
    select ${parent}::uuid, 'a' || i, case i when 7000 then ${spared} else ${popular} end::uuid
    from generate_series(1, 7000) i`)
  await db().run(sql`create table deleted_at_once (rows int)`)
  await db().run(sql`
    create function note_deleted() returns trigger language plpgsql as $$ begin
      insert into deleted_at_once select count(*) from gone; return null; end $$`)
  await db().run(sql`
    create trigger note_deleted after delete on cell_item referencing old table as gone
    for each statement execute function note_deleted()`)
  onTestFinished(async () => {
    await db().run(sql`drop trigger note_deleted on cell_item`)
    await db().run(sql`drop function note_deleted`)
    await db().run(sql`drop table deleted_at_once`)
  })
  expect(await cleanUp()).toBe(1)
  const { most, all } = await db().one<{ most: number; all: number }>(
    sql`select max(rows)::int as most, sum(rows)::int as all from deleted_at_once`,
  )
  expect([most, all]).toEqual([5000, 6999])
  expect(await db().rows(sql`select child_id from cell_item where parent_id = ${parent}`)).toEqual([
    { child_id: spared },
  ])
})

it('also leaves no timeline of events that were not numbered yet', async () => {
  const { cell } = await ada.client.cell_create({ data: {} })
  await db().run(sql`update cell set deleted_at = ${ago(31)}::timestamptz, created_at = ${ago(31)}::timestamptz
    where id = ${cell.id}`)
  expect(await cleanUp()).toBe(1)
  await root.client.cell_audit_list({ cell_id: await cellRow(test) })
  expect(await db().rows(sql`select from audit_cell where cell_id = ${cell.id}`)).toEqual([])
})

it('takes as many batches as there are, and leaves a cell that somebody holds to the next run', async () => {
  await cellRows(test, 1100, { deleted_at: sql`now() - interval '31 days'` })
  const held = await cellRow(test, { deleted_at: ago(32) })
  const other = await rival(test.databaseUrl)
  await other.begin('select from cell where id = $1 for update', [held])
  expect(await cleanUp()).toBe(1100)
  await other.commit()
  await other.close()
  expect(await cleanUp()).toBe(1)
})

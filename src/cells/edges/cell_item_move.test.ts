import { beforeEach, expect, test as it } from 'vitest'
import { cellRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

let parent_id: string
const test = await serviceForFile()
const [ada, bob] = await Promise.all([test.account(), test.account()])
const child_id = await cellRow(test, { created_by: bob.actor_id, visibility: 'public' })
beforeEach(async () => {
  parent_id = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
  await itemRow(test, parent_id, 'a', child_id)
  await test.service.app.db.run(sql`
    update cell_item set created_at = '2026-01-01T00:00:00Z' where parent_id = ${parent_id}`)
})

const move = (position: string, new_position: string, { client } = ada) =>
  client.cell_item_move({ parent_id, position, new_position })
const rows = () =>
  test.service.app.db.rows<{ position: string; child_id: string }>(sql`
    select position, child_id from cell_item where parent_id = ${parent_id} order by position`)

it('the item is only at its new position, with its old timestamp; one audit row in both timelines', async () => {
  const { item } = await scenario(test, () => move('a', 'b'), {
    audit: [
      {
        event_type: 'cell_item_move',
        actor_id: ada.actor_id,
        account_id: ada.id,
        metadata: { parent_id, child_id, position_old: 'a', position_new: 'b' },
      },
    ],
  })
  expect(item).toEqual({ parent_id, position: 'b', child_id, created_at: '2026-01-01T00:00:00.000Z' })
  expect((await ada.client.cell_item_list({ parent_id })).items).toEqual([item])
  const row = await test.service.app.db.first<{ cell_ids: string[] }>(sql`
    select cell_ids from audit_entries() order by written desc limit 1`)
  expect(row?.cell_ids.toSorted()).toEqual([parent_id, child_id].toSorted())
})

it('to its own position: nothing is written, the stored item is returned', async () => {
  const { item } = await scenario(test, () => move('a', 'a'))
  expect(item).toEqual({ parent_id, position: 'a', child_id, created_at: '2026-01-01T00:00:00.000Z' })
})

it('to the position of another item, visible or not: refused, and both stay', async () => {
  const hidden = await cellRow(test, { created_by: bob.actor_id })
  await itemRow(test, parent_id, 'b', hidden)
  await itemRow(test, parent_id, 'c', child_id)
  const before = await rows()
  for (const position of ['b', 'c'])
    await scenario(test, () => move('a', position), { reason: 'cell_item_position_taken' })
  expect(await rows()).toEqual(before)
})

it('to the position of an item whose child is deleted: taken over', async () => {
  const deleted = await cellRow(test, { visibility: 'public', deleted_at: '2026-01-01T00:00:00Z' })
  await itemRow(test, parent_id, 'b', deleted)
  await scenario(test, () => move('a', 'b'), { audit: [{ event_type: 'cell_item_move' }] })
  expect(await rows()).toEqual([{ position: 'b', child_id }])
})

it('from a position without an item, or with one of a hidden child: not found, wherever it would go', async () => {
  await itemRow(test, parent_id, 'h', await cellRow(test, { created_by: bob.actor_id }))
  const before = await rows()
  for (const position of ['nowhere', 'h'])
    for (const new_position of [position, 'a', 'free'])
      await scenario(test, () => move(position, new_position), { reason: 'cell_not_found' })
  expect(await rows()).toEqual(before)
})

it('there and back again', async () => {
  await move('a', 'b')
  await move('b', 'a')
  expect(await rows()).toEqual([{ position: 'a', child_id }])
})

it.each<[object]>([
  [{ position: '' }],
  [{ position: 'é' }],
  [{ new_position: 'x'.repeat(201) }],
  [{ new_position: '-' }],
  [{ new_position: null }],
  [{ new_position: undefined }],
  [{ parent_id: 'x' }],
  [{ new_parent_id: '11111111-1111-4111-8111-111111111111' }],
])('%j is refused', async (wrong) => {
  const input = { parent_id, position: 'a', new_position: 'b', ...wrong }
  await scenario(
    test,
    () => ada.client.cell_item_move(input as Parameters<typeof ada.client.cell_item_move>[0]),
    {
      reason: 'invalid_params',
    },
  )
})

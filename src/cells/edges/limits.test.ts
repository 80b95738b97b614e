import { expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf, tally } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'

const max = 3
const test = await serviceForFile({ max_cell_edges: max })
const ada = await test.account()

const made = async (by = ada) => (await by.client.cell_create({ data: {} })).cell.id
const set = (source_id: string, name: string, target_id: string, by = ada) =>
  by.client.cell_field_set({ source_id, name, target_id })
const insert = (parent_id: string, position: string, child_id: string, by = ada) =>
  by.client.cell_item_insert({ parent_id, position, child_id })
const stored = async (table: string, from: string) =>
  (
    await test.service.app.db.first<{ n: number }>(sql`
      select count(*)::int as n from ${sql.raw(table)}
      where ${sql.raw(table === 'cell_field' ? 'source_id' : 'parent_id')} = ${from}::uuid`)
  )?.n

it.each([
  ['fields', set, 'cell_field'],
  ['items', insert, 'cell_item'],
] as const)('a cell cannot exceed its max of %s by concurrent calls', async (limit, add, table) => {
  const [id, far] = [await made(), await made()]
  const keys = Array.from({ length: 20 }, (_, n) => `k${n}`)
  const calls = keys.map((key) => add(id, key, far))
  expect(await tally(calls)).toEqual({ ok: max, cell_edges_full: keys.length - max })
  expect(await stored(table, id)).toBe(max)
  const refused = await (limit === 'fields'
    ? ada.client.try.cell_field_set({ source_id: id, name: 'x', target_id: far })
    : ada.client.try.cell_item_insert({ parent_id: id, position: 'x', child_id: far }))
  expect(refused).toMatchObject({ ok: false, error: { status: 409, data: { limit, max } } })
})

it('a full cell takes writes that add no edge: another target, a move, a key that was freed', async () => {
  const [id, far, other] = [await made(), await made(), await made()]
  for (const key of ['a', 'b', 'c']) {
    await set(id, key, far)
    await insert(id, key, far)
  }
  expect((await set(id, 'a', other)).field.target_id).toBe(other)
  expect(await reasonOf(insert(id, 'a', other))).toBe('cell_item_position_taken')
  await ada.client.cell_item_move({ parent_id: id, position: 'a', new_position: 'd' })
  await ada.client.cell_item_delete({ parent_id: id, position: 'd' })
  await ada.client.cell_field_delete({ source_id: id, name: 'b' })
  expect(await reasonOf(insert(id, 'e', other))).toBe('ok')
  expect(await reasonOf(set(id, 'e', other))).toBe('ok')
})

it('edges to deleted cells, which no caller can delete, make room', async () => {
  const [id, gone, far] = [await made(), await made(), await made()]
  for (const key of ['a', 'b', 'c']) {
    await set(id, key, gone)
    await insert(id, key, gone)
  }
  await ada.client.cell_delete({ cell_id: gone })
  for (const key of ['d', 'e', 'f']) {
    expect(await reasonOf(set(id, key, far))).toBe('ok')
    expect(await reasonOf(insert(id, key, far))).toBe('ok')
  }
  expect(await reasonOf(set(id, 'g', far))).toBe('cell_edges_full')
  expect([await stored('cell_field', id), await stored('cell_item', id)]).toEqual([max, max])
})

it('a clone has no more than its source may have', async () => {
  const [id, far] = [await made(), await made()]
  for (const key of ['a', 'b', 'c', 'd']) await fieldRow(test, id, key, far)
  for (const key of ['a', 'b', 'c']) await itemRow(test, id, key, far)
  for (const deep of [false, true])
    expect(await ada.client.try.cell_clone({ source_id: id, deep })).toMatchObject({
      error: { reason: 'cell_clone_too_large', data: { limit: 'edges', max } },
    })
  await ada.client.cell_field_delete({ source_id: id, name: 'd' })
  expect((await ada.client.cell_clone({ source_id: id, deep: true })).cloned_count).toBe(2)
})

it('a stranger cannot learn how full a cell is', async () => {
  const bob = await test.account()
  const id = await made()
  const far = await cellRow(test, { visibility: 'public' })
  for (const key of ['a', 'b', 'c']) await insert(id, key, far)
  expect(await reasonOf(insert(id, 'd', far, bob))).toBe('cell_not_found')
})

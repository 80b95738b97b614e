import { describe, expect, test as it } from 'vitest'
import { cellRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { rpc } from '../../../test/helpers/http.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob] = await Promise.all([test.account(), test.account()])
const parent_id = await cellRow(test, { created_by: ada.actor_id })
const child_id = await cellRow(test, { created_by: bob.actor_id, visibility: 'public' })

const insert = (position: string, child = child_id, parent = parent_id) =>
  ada.client.cell_item_insert({ parent_id: parent, child_id: child, position })
const audited = (position: string, child = child_id) => ({
  audit: [
    {
      event_type: 'cell_item_insert',
      actor_id: ada.actor_id,
      account_id: ada.id,
      metadata: { parent_id, position, child_id: child },
    },
  ],
})
const at = async (position: string) =>
  (await ada.client.cell_item_list({ parent_id, limit: 500 })).items.find(
    (item) => item.position === position,
  )

it('stores and returns the item, and leaves one audit row in both timelines', async () => {
  const sent = { parent_id: parent_id.toUpperCase(), child_id: child_id.toUpperCase(), position: 'First' }
  const { item } = await scenario(test, () => ada.client.cell_item_insert(sent), audited('First'))
  const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(item).toEqual({ parent_id, position: 'First', child_id, created_at })
  expect(await at('First')).toEqual(item)
  const row = await test.service.app.db.first<{ cell_ids: string[] }>(sql`
    select cell_ids from audit_log order by written desc limit 1`)
  expect(row?.cell_ids.toSorted()).toEqual([parent_id, child_id].toSorted())
})

it('a child may be at several positions, and a cell may be its own item', async () => {
  await insert('several1')
  await insert('several2')
  await insert('self', parent_id)
  expect(await Promise.all(['several1', 'several2', 'self'].map(at))).toMatchObject([
    { child_id },
    { child_id },
    { child_id: parent_id },
  ])
})

describe('a position that is held', () => {
  it('by any live item is taken, by the same child as well; nothing changes', async () => {
    const hidden = await cellRow(test, { created_by: bob.actor_id })
    for (const [position, holder] of [
      ['t1', child_id],
      ['t2', parent_id],
      ['t3', hidden],
    ] as const) {
      await itemRow(test, parent_id, position, holder)
      const reply = await scenario(test, () =>
        rpc(
          test.url,
          { jsonrpc: '2.0', id: 1, method: 'cell_item_insert', params: { parent_id, child_id, position } },
          { cookie: ada.cookie },
        ),
      )
      expect([reply.status, reply.json]).toMatchObject([
        409,
        { error: { code: -32004, data: { reason: 'cell_item_position_taken' } } },
      ])
      expect(reply.text).not.toContain(holder)
      const row = await test.service.app.db.first(sql`
        select child_id from cell_item where parent_id = ${parent_id} and position = ${position}`)
      expect(row).toEqual({ child_id: holder })
    }
  })

  it('by an item whose child was deleted is taken over, with a new timestamp', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    await itemRow(test, parent_id, 'over', cell.id)
    await test.service.app.db.run(sql`
      update cell_item set created_at = '2026-01-01T00:00:00Z' where child_id = ${cell.id}`)
    await ada.client.cell_delete({ cell_id: cell.id })
    const { item } = await scenario(test, () => insert('over'), audited('over'))
    expect(item.child_id).toBe(child_id)
    expect(item.created_at > '2026-01-01T00:00:00.000Z').toBe(true)
    expect(await at('over')).toEqual(item)
    expect(await reasonOf(insert('over'))).toBe('cell_item_position_taken')
  })

  it('of one parent is free in another', async () => {
    const other = await cellRow(test, { created_by: ada.actor_id })
    await insert('both')
    expect((await insert('both', child_id, other)).item.parent_id).toBe(other)
  })
})

it.each(['0', '00', 'a0Z9', 'x'.repeat(200), 'constructor'])('the position %s is valid', async (position) => {
  expect((await insert(position)).item.position).toBe(position)
  expect(await at(position)).toMatchObject({ child_id })
})

it.each<[object]>([
  [{ position: 'x'.repeat(201) }],
  [{ position: '' }],
  [{ position: 'é' }],
  [{ position: '-' }],
  [{ position: 'a b' }],
  [{ position: 'a\n' }],
  [{ position: '\0' }],
  [{ position: 1 }],
  [{ position: null }],
  [{ parent_id: 'x' }],
  [{ parent_id: undefined }],
  [{ child_id: null }],
  [{ name: 'a' }],
])('%j is refused', async (wrong) => {
  const input = { parent_id, child_id, position: 'a', ...wrong } as Parameters<
    typeof ada.client.cell_item_insert
  >[0]
  await scenario(test, () => ada.client.cell_item_insert(input), { reason: 'invalid_params' })
})

import { describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { type Sql, sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

/** `cell_field_delete` and `cell_item_delete`. */

const missing = '11111111-1111-4111-8111-111111111111'
const test = await serviceForFile()
const [ada, bob] = await Promise.all([test.account(), test.account()])
const from = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })

type Kind = {
  row: typeof fieldRow
  input(from: string, key: string): object
  remove(by: TestAccount, input: object): Promise<unknown>
  link(key: string, to: string): Promise<unknown>
  stored(key: string): Sql
  to: 'target_id' | 'child_id'
  wrong: object[]
}
const kinds: ['cell_field_delete' | 'cell_item_delete', Kind][] = [
  [
    'cell_field_delete',
    {
      row: fieldRow,
      input: (source_id, name) => ({ source_id, name }),
      remove: ({ client }, input) =>
        client.cell_field_delete(input as Parameters<typeof client.cell_field_delete>[0]),
      link: (name, target_id) => ada.client.cell_field_set({ source_id: from, name, target_id }),
      stored: (name) => sql`select from cell_field where source_id = ${from} and name = ${name}`,
      to: 'target_id',
      wrong: [
        {},
        { name: 'a' },
        { source_id: 'x', name: 'a' },
        { source_id: missing, name: 'A' },
        { source_id: missing, name: 'a', target_id: null },
      ],
    },
  ],
  [
    'cell_item_delete',
    {
      row: itemRow,
      input: (parent_id, position) => ({ parent_id, position }),
      remove: ({ client }, input) =>
        client.cell_item_delete(input as Parameters<typeof client.cell_item_delete>[0]),
      link: (position, child_id) => ada.client.cell_item_insert({ parent_id: from, position, child_id }),
      stored: (position) => sql`select from cell_item where parent_id = ${from} and position = ${position}`,
      to: 'child_id',
      wrong: [
        {},
        { position: '1' },
        { parent_id: 'x', position: '1' },
        { parent_id: missing, position: '-' },
        { parent_id: missing, position: '1', child_id: null },
      ],
    },
  ],
]

describe.each(kinds)('%s', (method, { row, input, remove, link, stored, to, wrong }) => {
  const isThere = async (key: string) => (await test.service.app.db.rows(stored(key))).length === 1

  it('removes the edge, with one audit row; a second call finds nothing and leaves none', async () => {
    for (const key of ['a1', 'a11']) await row(test, from, key, from)
    const gone = input(from, 'a1')
    const metadata = { ...gone, [to]: from }
    const answer = await scenario(test, () => remove(ada, gone), {
      audit: [{ event_type: method, actor_id: ada.actor_id, account_id: ada.id, metadata }],
    })
    expect(answer).toEqual({ ok: true, deleted: true })
    expect([await isThere('a1'), await isThere('a11')]).toEqual([false, true])
    expect(await scenario(test, () => remove(ada, gone))).toEqual({ ok: true, deleted: false })
  })

  it('works if the caller cannot see the far cell, and the response does not name it', async () => {
    const hidden = await cellRow(test, { created_by: bob.actor_id })
    await row(test, from, 'hidden', hidden)
    const answer = await scenario(test, () => remove(ada, input(from, 'hidden')), {
      audit: [{ event_type: method, metadata: { ...input(from, 'hidden'), [to]: hidden } }],
    })
    expect(answer).toEqual({ ok: true, deleted: true })
    expect(await isThere('hidden')).toBe(false)
  })

  it('an edge that leads to a deleted cell does not exist', async () => {
    const deleted = await cellRow(test, { visibility: 'public', deleted_at: '2026-01-01T00:00:00Z' })
    await row(test, from, 'dead', deleted)
    const { cell } = await ada.client.cell_create({ data: {} })
    await link('dying', cell.id)
    await ada.client.cell_delete({ cell_id: cell.id })
    for (const key of ['dead', 'dying']) {
      const answer = await scenario(test, () => remove(ada, input(from, key)))
      expect(answer).toEqual({ ok: true, deleted: false })
    }
  })

  it.each(wrong.map((one) => [one]))('%j is refused', async (one) => {
    expect(await reasonOf(remove(ada, one))).toBe('invalid_params')
  })
})

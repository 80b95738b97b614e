import { beforeEach, describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'

/** Statements of the running call, without BEGIN and COMMIT. */
const sent: string[] = []

let own: string
const missing = '11111111-1111-4111-8111-111111111111'
const test = await serviceForFile({ onStatement: (text) => sent.push(text) })
const [ada, bob] = await Promise.all([test.account(), test.account()])
const open = await cellRow(test, { visibility: 'public' })
const hidden = await cellRow(test, { created_by: bob.actor_id })
const deleted = await cellRow(test, { created_by: ada.actor_id, deleted_at: '2026-01-01T00:00:00Z' })
for (const id of [hidden, deleted]) {
  await fieldRow(test, id, 'a', open)
  await itemRow(test, id, 'a', open)
}
beforeEach(async () => {
  own = await cellRow(test, { created_by: ada.actor_id })
  await fieldRow(test, own, 'a', open)
  await itemRow(test, own, 'a', open)
})

/** The outcome of a call and its statements: `c` reads the caller, `s` is one of the method, `A` writes audit rows. */
async function statements(call: () => Promise<unknown>): Promise<string> {
  sent.length = 0
  const reason = await reasonOf(call())
  const kinds = sent.map((text) =>
    text.includes('auth_session') ? 'c' : text.includes('audit_write') ? 'A' : 's',
  )
  return `${reason} ${kinds.join('')}`
}
const set = (source_id: string, name: string, target_id: string) => () =>
  ada.client.cell_field_set({ source_id, name, target_id })
const unset = (source_id: string, name: string) => () => ada.client.cell_field_delete({ source_id, name })
const insert = (parent_id: string, position: string, child_id: string) => () =>
  ada.client.cell_item_insert({ parent_id, position, child_id })
const move = (parent_id: string, position: string, new_position: string) => () =>
  ada.client.cell_item_move({ parent_id, position, new_position })
const remove = (parent_id: string, position: string) => () =>
  ada.client.cell_item_delete({ parent_id, position })

describe('a write is lock, write and audit rows; the lock alone where that decides', () => {
  it('cell_field_set', async () => {
    expect(await statements(set(own, 'b', open))).toBe('ok cssA')
    expect(await statements(set(own, 'b', own))).toBe('ok cssA')
    expect(await statements(set(own, 'b', own))).toBe('ok cs')
    for (const far of [hidden, deleted, missing])
      expect(await statements(set(own, 'a', far))).toBe('cell_not_found cs')
    for (const near of [hidden, deleted, missing, open])
      expect(await statements(set(near, 'a', open))).toBe('cell_not_found cs')
  })

  it('cell_item_insert', async () => {
    expect(await statements(insert(own, 'b', open))).toBe('ok cssA')
    expect(await statements(insert(own, 'b', own))).toBe('cell_item_position_taken css')
    for (const far of [hidden, deleted, missing])
      expect(await statements(insert(own, 'c', far))).toBe('cell_not_found cs')
    for (const near of [hidden, deleted, missing, open])
      expect(await statements(insert(near, 'c', open))).toBe('cell_not_found cs')
  })

  it('cell_item_move', async () => {
    await itemRow(test, own, 'z', open)
    await itemRow(test, own, 'hidden', hidden)
    expect(await statements(move(own, 'a', 'b'))).toBe('ok cssA')
    expect(await statements(move(own, 'b', 'b'))).toBe('ok cs')
    expect(await statements(move(own, 'b', 'z'))).toBe('cell_item_position_taken css')
    for (const position of ['empty', 'hidden'])
      expect(await statements(move(own, position, 'c'))).toBe('cell_not_found cs')
    for (const near of [hidden, deleted, missing, open])
      expect(await statements(move(near, 'a', 'c'))).toBe('cell_not_found cs')
  })

  it('cell_field_delete and cell_item_delete', async () => {
    for (const one of [unset, remove]) {
      expect(await statements(one(own, 'a'))).toBe('ok cssA')
      expect(await statements(one(own, 'a'))).toBe('ok cs')
      for (const near of [hidden, deleted, missing, open])
        expect(await statements(one(near, 'a'))).toBe('cell_not_found cs')
    }
  })
})

it('a list is one statement, whatever the outcome', async () => {
  const { client } = ada
  for (const id of [own, open, hidden, deleted, missing]) {
    const wanted = id === own || id === open ? 'ok cs' : 'cell_not_found cs'
    expect(await statements(() => client.cell_field_list({ source_id: id }))).toBe(wanted)
    expect(await statements(() => client.cell_field_list({ target_id: id, limit: 1 }))).toBe(wanted)
    expect(await statements(() => client.cell_item_list({ parent_id: id }))).toBe(wanted)
    expect(await statements(() => client.cell_item_list({ child_id: id, limit: 1 }))).toBe(wanted)
  }
  expect(await statements(() => client.cell_field_list({ source_id: own, cursor: 'bad' }))).toBe(
    'invalid_params c',
  )
  expect(await statements(() => client.cell_item_list({}))).toBe('cell_item_list_requires_parent_or_child c')
})

it('the statements of a hidden, a deleted and a missing cell are the same text', async () => {
  const texts = async (call: () => Promise<unknown>) => {
    await statements(call)
    return [...sent]
  }
  const calls: ((id: string) => () => Promise<unknown>)[] = [
    (id) => set(id, 'a', open),
    (id) => set(own, 'a', id),
    (id) => unset(id, 'a'),
    (id) => insert(id, 'a', open),
    (id) => insert(own, 'b', id),
    (id) => move(id, 'a', 'b'),
    (id) => remove(id, 'a'),
    (id) => () => ada.client.cell_field_list({ source_id: id }),
    (id) => () => ada.client.cell_item_list({ child_id: id }),
  ]
  for (const call of calls) {
    const wanted = await texts(call(missing))
    for (const id of [hidden, deleted]) expect(await texts(call(id))).toEqual(wanted)
  }
})

it('every statement of a method checks the rights of the caller', async () => {
  for (const call of [
    set(own, 'b', open),
    unset(own, 'b'),
    insert(own, 'b', open),
    move(own, 'b', 'c'),
    remove(own, 'c'),
  ]) {
    expect(await statements(call)).toBe('ok cssA')
    for (const text of sent.slice(1, 3)) expect(text).toContain('me.is_admin')
  }
})

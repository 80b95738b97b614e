import { describe, expect, test as it } from 'vitest'
import { cellRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { type CellData, CellDataIssues } from '../registry/hooks.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({
  hooks: {
    validateData(_kind: string | null, data: Record<string, unknown>) {
      if (data.refuse) throw new CellDataIssues([])
      return data
    },
  },
})
const [ada, editor, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

type Update = Parameters<TestAccount['client']['cell_update']>[0]
type Changes = Omit<Update, 'cell_id'>

/** A cell of ada that the editor may edit. */
async function shared(data: object = {}): Promise<string> {
  const cell_id = await cellRow(test, { data, created_by: ada.actor_id })
  await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
  return cell_id
}
const stored = async (id: string) => (await root.client.cell_get({ id })).cell
const update = (account: TestAccount, cell_id: string, changes: Changes) =>
  account.client.cell_update({ cell_id, ...changes })

describe('a change', () => {
  it('is written once, with version, time and actor, and one audit row', async () => {
    const cell_id = await shared({ a: 1 })
    const before = await stored(cell_id)
    const { cell } = await scenario(test, () => update(editor, cell_id, { data: { b: 2 } }), {
      audit: [
        {
          event_type: 'cell_update',
          actor_id: editor.actor_id,
          account_id: editor.id,
          target_actor_id: null,
          metadata: { cell_id },
        },
      ],
    })
    expect(cell).toEqual({
      ...before,
      data: { b: 2 },
      version: 2,
      updated_by: editor.actor_id,
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    expect(await stored(cell_id)).toEqual(cell)
  })

  it('of everything together is one version', async () => {
    const cell_id = await shared()
    const { cell } = await update(root, cell_id, { data_patch: { a: 1 }, visibility: 'public', path: 'all' })
    expect(cell).toMatchObject({ data: { a: 1 }, visibility: 'public', path: 'all', version: 2 })
    const cleared = await update(root, cell_id, { path: null, visibility: 'private', expected_version: 2 })
    expect(cleared.cell).toMatchObject({ path: null, visibility: 'private', version: 3 })
  })

  it('is never dated before the creation, even if the clock went back', async () => {
    const created_at = '2099-01-01T00:00:00.000Z'
    const cell_id = await cellRow(test, { created_by: ada.actor_id, created_at })
    expect((await update(ada, cell_id, { data: { a: 1 } })).cell.updated_at).toBe(created_at)
  })

  it('updates the size that page limits use', async () => {
    const cell_id = await shared()
    const data = { text: 'é😀', list: [1, 2.5] }
    await update(ada, cell_id, { data })
    const row = await test.service.app.db.first(sql`select data_bytes from cell where id = ${cell_id}`)
    expect(row).toEqual({ data_bytes: Buffer.byteLength(JSON.stringify(data)) })
  })
})

describe('if nothing differs, nothing is written and the stored cell is returned', () => {
  it.each<[string, Changes]>([
    ['no fields', {}],
    ['the same data', { data: { a: { x: 1, y: [2] }, b: 1 } }],
    ['the same data in another order, other number forms', { data: { b: 1.0, a: { y: [2], x: 1 } } }],
    ['an empty patch', { data_patch: {} }],
    ['a patch to what is there', { data_patch: { a: { x: 1 }, gone: null } }],
    ['the stored visibility', { visibility: 'private' }],
    ['no path where there is none', { path: null }],
    ['the stored version', { expected_version: 1 }],
    ['all of it', { data_patch: { b: 1 }, visibility: 'private', path: null, expected_version: 1 }],
  ])('%s', async (_what, changes) => {
    const cell_id = await shared({ a: { x: 1, y: [2] }, b: 1 })
    const before = await stored(cell_id)
    for (const account of [ada, editor, root])
      expect(await scenario(test, () => update(account, cell_id, changes))).toEqual({ cell: before })
    expect(await stored(cell_id)).toEqual(before)
  })

  it('the stored path, from an admin', async () => {
    const cell_id = await cellRow(test, { path: 'same' })
    await scenario(test, () => update(root, cell_id, { path: 'same' }))
  })
})

describe('data_patch', () => {
  it.each<[CellData, CellData, CellData]>([
    [{ label: 'x', summary: 'y', a: 1 }, { label: null }, { summary: 'y', a: 1 }],
    [{ a: { b: 1, c: { d: 1 } } }, { a: { c: { e: 2 } } }, { a: { b: 1, c: { d: 1, e: 2 } } }],
    [{ a: [1, 2] }, { a: [3] }, { a: [3] }],
    [{ a: { b: 1 } }, { a: 1 }, { a: 1 }],
    [{}, { a: { b: null } }, { a: {} }],
  ])('%j with %j becomes %j', async (data, data_patch, merged) => {
    const cell_id = await shared(data)
    expect((await update(editor, cell_id, { data_patch })).cell.data).toEqual(merged)
  })
})

describe('input', () => {
  it.each<[string, object, string]>([
    ['data and data_patch together', { data: {}, data_patch: {} }, 'invalid_params'],
    ['data of null', { data: null }, 'invalid_params'],
    ['data_patch of null', { data_patch: null }, 'invalid_params'],
    ['visibility of null', { visibility: null }, 'invalid_params'],
    ['an empty path', { path: '' }, 'invalid_params'],
    ['a kind', { kind: 'x' }, 'invalid_params'],
    ['an owner', { created_by: null }, 'invalid_params'],
    ['version 0', { expected_version: 0 }, 'invalid_params'],
    ['version 2147483647', { expected_version: 2_147_483_647 }, 'cell_version_conflict'],
    ['version 2147483648', { expected_version: 2_147_483_648 }, 'invalid_params'],
    ['version of null', { expected_version: null }, 'invalid_params'],
    ['a kind in data', { data: { kind: null } }, 'cell_kind_in_data'],
    ['a kind in the patch', { data_patch: { kind: null } }, 'cell_kind_in_data'],
    ['an upper-case id', { cell_id: 'upper' }, 'ok'],
  ])('%s: %s', async (_what, changes, reason) => {
    const cell_id = await shared()
    const sent = { cell_id, ...changes }
    if (sent.cell_id === 'upper') sent.cell_id = cell_id.toUpperCase()
    expect(await reasonOf(root.client.cell_update(sent))).toBe(reason)
  })
})

describe('with two errors, the first one is reported', () => {
  const unknown = '11111111-1111-4111-8111-111111111111'

  it('a path from a non-admin before any lookup', async () => {
    const hidden = await cellRow(test, {})
    for (const cell_id of [unknown, hidden])
      await scenario(test, () => update(ada, cell_id, { path: 'x' }), { reason: 'cell_path_admin_only' })
    await scenario(test, () => update(root, unknown, { path: 'x' }), { reason: 'cell_not_found' })
  })

  it('the tier before everything that depends on the cell: viewers learn nothing', async () => {
    const cell_id = await cellRow(test, { created_by: ada.actor_id, visibility: 'public', path: 'viewed' })
    await test.cellGrant(cell_id, 'viewer', { actor_id: editor.actor_id })
    const wrong: Changes[] = [
      { visibility: 'private' },
      { visibility: 'public' },
      { path: null },
      { expected_version: 9 },
      { data: { kind: 1 } },
      { data: { refuse: 1 } },
      {},
    ]
    for (const changes of wrong)
      for (const id of [cell_id, unknown])
        await scenario(test, () => update(editor, id, changes), { reason: 'cell_not_found' })
  })

  it.each<[string, Changes, string]>([
    [
      'visibility, path, version',
      { visibility: 'public', path: null, expected_version: 9 },
      'cell_visibility_manage_only',
    ],
    ['path, version', { path: null, expected_version: 9 }, 'cell_path_admin_only'],
    ['version, kind', { expected_version: 9, data: { kind: 1 } }, 'cell_version_conflict'],
    ['kind, hook', { data: { kind: 1, refuse: 1 } }, 'cell_kind_in_data'],
    ['kind, size of the merge', { data_patch: { kind: 1, big: 'x'.repeat(262_100) } }, 'cell_kind_in_data'],
    ['size of the merge, hook', { data_patch: { refuse: 1, big: 'x'.repeat(262_100) } }, 'invalid_params'],
    ['hook', { data_patch: { refuse: 1 } }, 'cell_data_invalid'],
  ])('%s, to an editor', async (_what, changes, reason) => {
    const cell_id = await cellRow(test, {
      created_by: ada.actor_id,
      path: `path ${reason} ${Math.random()}`,
      data: { there: 'already, and more than a few bytes' },
    })
    await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
    const before = await stored(cell_id)
    await scenario(test, () => update(editor, cell_id, changes), { reason })
    expect(await stored(cell_id)).toEqual(before)
  })

  it('the hook before the taken path', async () => {
    await cellRow(test, { path: 'taken' })
    const cell_id = await shared()
    const changes = { path: 'taken', data: { refuse: 1 } }
    await scenario(test, () => update(root, cell_id, changes), { reason: 'cell_data_invalid' })
    await scenario(test, () => update(root, cell_id, { path: 'taken' }), { reason: 'cell_path_taken' })
  })

  it('the conflict names the stored version', async () => {
    const cell_id = await shared()
    await update(ada, cell_id, { data: { a: 1 } })
    expect(await editor.client.try.cell_update({ cell_id, data: {}, expected_version: 1 })).toMatchObject({
      ok: false,
      error: { status: 409, data: { reason: 'cell_version_conflict', current_version: 2 } },
    })
  })
})

describe('visibility', () => {
  it('is changed by owner and admin; an editor may send what is stored', async () => {
    const cell_id = await shared()
    const reason = 'cell_visibility_manage_only'
    await scenario(test, () => update(editor, cell_id, { visibility: 'public' }), { reason })
    await update(ada, cell_id, { visibility: 'public' })
    const sent = update(editor, cell_id, { visibility: 'public', data: { a: 1 } })
    expect((await sent).cell).toMatchObject({ visibility: 'public', version: 3 })
    await scenario(test, () => update(editor, cell_id, { visibility: 'private' }), { reason })
    await update(root, cell_id, { visibility: 'private' })
  })
})

describe('path', () => {
  it('null from a non-admin is refused only if a path is stored', async () => {
    const reason = 'cell_path_admin_only'
    const with_path = await cellRow(test, { created_by: ada.actor_id, path: 'kept' })
    const without = await cellRow(test, { created_by: ada.actor_id })
    await scenario(test, () => update(ada, with_path, { path: null }), { reason })
    await update(ada, without, { path: null, data: { a: 1 } })
    // Sending the stored path again is also refused before the lookup.
    await scenario(test, () => update(ada, with_path, { path: 'kept' }), { reason })
    await update(ada, with_path, { data: { a: 1 } })
  })
})

describe('a system cell', () => {
  it('can be edited by admins only, whatever its grants', async () => {
    const cell_id = await cellRow(test, { visibility: 'public' })
    await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
    await scenario(test, () => update(editor, cell_id, { data: { a: 1 } }), { reason: 'cell_not_found' })
    expect((await update(root, cell_id, { data: { a: 1 } })).cell.created_by).toBe(null)
  })
})

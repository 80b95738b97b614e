import { expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario } from '../testing/index.ts'

const test = await serviceForFile()
const [ada, editor, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

it('leaves one audit row; a second call leaves none', async () => {
  const cell_id = await cellRow(test, { created_by: ada.actor_id })
  const answer = await scenario(test, () => ada.client.cell_delete({ cell_id: cell_id.toUpperCase() }), {
    audit: [{ event_type: 'cell_delete', actor_id: ada.actor_id, account_id: ada.id, metadata: { cell_id } }],
  })
  expect(answer).toEqual({ ok: true, deleted: true })
  for (const { client } of [ada, root])
    await scenario(test, () => client.cell_delete({ cell_id }), { reason: 'cell_not_found' })
})

it('a deleted cell is absent for every method and every caller', async () => {
  const cell_id = await cellRow(test, { created_by: ada.actor_id, visibility: 'public', path: 'removed' })
  await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
  const parent = await cellRow(test, { visibility: 'public' })
  await fieldRow(test, parent, 'to', cell_id)
  await itemRow(test, parent, '1', cell_id)
  await editor.client.cell_delete({ cell_id })
  const reason = 'cell_not_found'
  for (const { client } of [ada, editor, root]) {
    expect(await reasonOf(client.cell_get({ id: cell_id }))).toBe(reason)
    expect(await reasonOf(client.cell_get({ path: 'removed' }))).toBe(reason)
    expect(await reasonOf(client.cell_update({ cell_id }))).toBe(reason)
    expect(await reasonOf(client.cell_delete({ cell_id }))).toBe(reason)
    expect((await client.cell_list({ ids: [cell_id] })).cells).toEqual([])
    expect((await client.cell_list({ path_prefix: 'removed' })).cells).toEqual([])
    expect((await client.cell_list({ shared_with: 'me' })).cells).toEqual([])
    expect(await client.cell_get({ id: parent })).toMatchObject({ fields: [], items: [] })
  }
})

const stored = (cell_id: string) =>
  test.service.app.db.first<Record<string, unknown>>(sql`
    select c.*, (select count(*) from cell_grant where cell_id = c.id) as grants,
      (select count(*) from cell_item where parent_id = c.id) as items
    from cell c where c.id = ${cell_id}`)

it('the row stays, unchanged but for the tombstone, with its edges; its grants are gone', async () => {
  const cell_id = await cellRow(test, { created_by: ada.actor_id, data: { a: 1 } })
  const kept = await cellRow(test, { created_by: ada.actor_id })
  for (const id of [cell_id, kept]) await test.cellGrant(id, 'viewer', { actor_id: editor.actor_id })
  await itemRow(test, cell_id, '1', cell_id)
  const before = await stored(cell_id)
  await ada.client.cell_delete({ cell_id })
  expect(before).toMatchObject({ grants: 1, items: 1 })
  expect(await stored(cell_id)).toEqual({ ...before, deleted_at: expect.any(String), grants: 0 })
  expect(await stored(kept)).toMatchObject({ grants: 1 })
})

it('its grants are gone too if the delete waited for another call', async () => {
  const cell_id = await cellRow(test, { created_by: ada.actor_id })
  await test.cellGrant(cell_id, 'viewer', { actor_id: editor.actor_id })
  const other = await rival(test.databaseUrl)
  await other.begin('update cell set version = version + 1 where id = $1', [cell_id])
  await other.release(ada.client.cell_delete({ cell_id }))
  await other.close()
  expect(await stored(cell_id)).toMatchObject({ deleted_at: expect.any(String), grants: 0 })
})

it('the tombstone is never dated before the creation', async () => {
  const cell_id = await cellRow(test, { created_by: ada.actor_id, created_at: '2099-01-01T00:00:00Z' })
  await ada.client.cell_delete({ cell_id })
  const row = await test.service.app.db.first(sql`select deleted_at from cell where id = ${cell_id}`)
  expect(row).toEqual({ deleted_at: '2099-01-01T00:00:00.000Z' })
})

it.each<[object, string]>([
  [{}, 'invalid_params'],
  [{ cell_id: null }, 'invalid_params'],
  [{ cell_id: 'x' }, 'invalid_params'],
  [{ id: '11111111-1111-4111-8111-111111111111' }, 'invalid_params'],
  [{ cell_id: '11111111-1111-4111-8111-111111111111', force: true }, 'invalid_params'],
])('%j is refused', async (input, reason) => {
  expect(await reasonOf(ada.client.cell_delete(input as { cell_id: string }))).toBe(reason)
})

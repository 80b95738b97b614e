import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../../testing/index.ts'

let test: TestService
let ada: TestAccount
let bob: TestAccount
let source_id: string
beforeAll(async () => {
  test = await testService()
  ;[ada, bob] = await Promise.all([test.account(), test.account()])
  source_id = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
})
afterAll(() => test.close())

const isThere = async (name: string) =>
  (
    await test.service.app.db.rows(
      sql`select from cell_field where source_id = ${source_id} and name = ${name}`,
    )
  ).length === 1

it('takes the field away, with one audit row; a second call finds nothing and leaves none', async () => {
  await fieldRow(test, source_id, 'gone', source_id)
  await fieldRow(test, source_id, 'kept', source_id)
  const input = { source_id, name: 'gone' }
  const metadata = { ...input, target_id: source_id }
  const answer = await scenario(test, () => ada.client.cell_field_delete(input), {
    audit: [{ event_type: 'cell_field_delete', actor_id: ada.actor_id, account_id: ada.id, metadata }],
  })
  expect(answer).toEqual({ ok: true, deleted: true })
  expect([await isThere('gone'), await isThere('kept')]).toEqual([false, true])
  expect(await scenario(test, () => ada.client.cell_field_delete(input))).toEqual({
    ok: true,
    deleted: false,
  })
})

it('works on a field whose target the caller cannot see, and the answer does not name it', async () => {
  const target_id = await cellRow(test, { created_by: bob.actor_id })
  await fieldRow(test, source_id, 'hidden', target_id)
  const answer = await scenario(test, () => ada.client.cell_field_delete({ source_id, name: 'hidden' }), {
    audit: [{ event_type: 'cell_field_delete', metadata: { source_id, name: 'hidden', target_id } }],
  })
  expect(answer).toEqual({ ok: true, deleted: true })
  expect(await isThere('hidden')).toBe(false)
})

it('a field that leads to a deleted cell is none', async () => {
  const target = await cellRow(test, { visibility: 'public', deleted_at: '2026-01-01T00:00:00Z' })
  await fieldRow(test, source_id, 'dead', target)
  const answer = await scenario(test, () => ada.client.cell_field_delete({ source_id, name: 'dead' }))
  expect(answer).toEqual({ ok: true, deleted: false })
})

describe('who may', () => {
  it.each<[string, boolean]>([
    ['owner', true],
    ['editor', true],
    ['admin', true],
    ['viewer', false],
    ['stranger', false],
  ])('%s: %s', async (who, isAllowed) => {
    const account = who === 'owner' ? ada : await test.account({ roles: who === 'admin' ? ['admin'] : [] })
    if (who === 'editor' || who === 'viewer')
      await test.cellGrant(source_id, who, { actor_id: account.actor_id })
    const name = `of_${who}`
    await fieldRow(test, source_id, name, source_id)
    const reason = await reasonOf(account.client.cell_field_delete({ source_id, name }))
    expect(reason).toBe(isAllowed ? 'ok' : 'cell_not_found')
    expect(await isThere(name)).toBe(!isAllowed)
  })

  it('a deleted or missing source is not found, whether the field exists or not', async () => {
    const deleted = await cellRow(test, { created_by: ada.actor_id, deleted_at: '2026-01-01T00:00:00Z' })
    await fieldRow(test, deleted, 'f', source_id)
    for (const id of [deleted, ada.actor_id])
      for (const name of ['f', 'none'])
        await scenario(test, () => ada.client.cell_field_delete({ source_id: id, name }), {
          reason: 'cell_not_found',
        })
  })
})

it.each<[object]>([
  [{}],
  [{ name: 'a' }],
  [{ source_id: 'x', name: 'a' }],
  [{ source_id: '11111111-1111-4111-8111-111111111111', name: 'A' }],
  [{ source_id: '11111111-1111-4111-8111-111111111111', name: 'a', target_id: null }],
])('%j is refused', async (input) => {
  const sent = input as { source_id: string; name: string }
  expect(await reasonOf(ada.client.cell_field_delete(sent))).toBe('invalid_params')
})

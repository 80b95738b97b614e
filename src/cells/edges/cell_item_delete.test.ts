import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../../testing/index.ts'

let test: TestService
let ada: TestAccount
let bob: TestAccount
let parent_id: string
beforeAll(async () => {
  test = await testService()
  ;[ada, bob] = await Promise.all([test.account(), test.account()])
  parent_id = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
})
afterAll(() => test.close())

const isThere = async (position: string) =>
  (
    await test.service.app.db.rows(sql`
      select from cell_item where parent_id = ${parent_id} and position = ${position}`)
  ).length === 1

it('takes the item away, with one audit row; a second call finds nothing and leaves none', async () => {
  for (const position of ['1', '11']) await itemRow(test, parent_id, position, parent_id)
  const input = { parent_id, position: '1' }
  const metadata = { ...input, child_id: parent_id }
  const answer = await scenario(test, () => ada.client.cell_item_delete(input), {
    audit: [{ event_type: 'cell_item_delete', actor_id: ada.actor_id, account_id: ada.id, metadata }],
  })
  expect(answer).toEqual({ ok: true, deleted: true })
  expect([await isThere('1'), await isThere('11')]).toEqual([false, true])
  expect(await scenario(test, () => ada.client.cell_item_delete(input))).toEqual({ ok: true, deleted: false })
})

it('works on an item whose child the caller cannot see, and the answer does not name it', async () => {
  const child_id = await cellRow(test, { created_by: bob.actor_id })
  await itemRow(test, parent_id, '2', child_id)
  const answer = await scenario(test, () => ada.client.cell_item_delete({ parent_id, position: '2' }), {
    audit: [{ event_type: 'cell_item_delete', metadata: { parent_id, position: '2', child_id } }],
  })
  expect(answer).toEqual({ ok: true, deleted: true })
})

it('an item whose child is deleted is none', async () => {
  const { cell } = await ada.client.cell_create({ data: {} })
  await ada.client.cell_item_insert({ parent_id, child_id: cell.id, position: '3' })
  await ada.client.cell_delete({ cell_id: cell.id })
  const answer = await scenario(test, () => ada.client.cell_item_delete({ parent_id, position: '3' }))
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
      await test.cellGrant(parent_id, who, { actor_id: account.actor_id })
    await itemRow(test, parent_id, who, parent_id)
    const reason = await reasonOf(account.client.cell_item_delete({ parent_id, position: who }))
    expect(reason).toBe(isAllowed ? 'ok' : 'cell_not_found')
    expect(await isThere(who)).toBe(!isAllowed)
  })
})

it.each<[object]>([
  [{}],
  [{ position: '1' }],
  [{ parent_id: 'x', position: '1' }],
  [{ parent_id: '11111111-1111-4111-8111-111111111111', position: '-' }],
  [{ parent_id: '11111111-1111-4111-8111-111111111111', position: '1', child_id: null }],
])('%j is refused', async (input) => {
  const sent = input as { parent_id: string; position: string }
  expect(await reasonOf(ada.client.cell_item_delete(sent))).toBe('invalid_params')
})

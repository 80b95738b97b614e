import { afterAll, beforeAll, expect, test as it } from 'vitest'
import { cellRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { send } from '../../../test/helpers/http.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../../testing/index.ts'

const missing = '11111111-1111-4111-8111-111111111111'
const open = { visibility: 'public' } as const
let test: TestService
let bob: TestAccount
beforeAll(async () => {
  test = await testService()
  bob = await test.account()
})
afterAll(() => test.close())

it('forward: all items in byte order of their positions: digits, upper case, lower case, with exactly their keys, and no audit row', async () => {
  const parent_id = await cellRow(test, open)
  for (const position of ['V', 'a', 'B', '9', '90', '8z']) await itemRow(test, parent_id, position, parent_id)
  const { items, next_cursor } = await scenario(test, () =>
    bob.client.cell_item_list({ parent_id: parent_id.toUpperCase() }),
  )
  expect(items.map(({ position }) => position)).toEqual(['8z', '9', '90', 'B', 'V', 'a'])
  const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(items[0]).toEqual({ parent_id, position: '8z', child_id: parent_id, created_at })
  expect(next_cursor).toBeNull()
})

it('reverse: with exactly the same keys', async () => {
  const [parent_id, child_id] = [await cellRow(test, open), await cellRow(test, open)]
  await itemRow(test, parent_id, 'z', child_id)
  await test.service.app.db.run(
    sql`update cell_item set created_at = '2026-01-01'::timestamptz where parent_id = ${parent_id}`,
  )
  expect((await bob.client.cell_item_list({ child_id })).items).toEqual([
    { parent_id, position: 'z', child_id, created_at: '2026-01-01T00:00:00.000Z' },
  ])
})

it('of a cell without items: an empty list', async () => {
  const id = await cellRow(test, open)
  for (const input of [{ parent_id: id }, { child_id: id }])
    expect(await bob.client.cell_item_list(input)).toEqual({ items: [], next_cursor: null })
})

it('is reachable by GET, and by nobody without a credential', async () => {
  const parent_id = await cellRow(test, open)
  await itemRow(test, parent_id, 'a', parent_id)
  const params = encodeURIComponent(JSON.stringify({ parent_id }))
  const path = `/api/rpc?method=cell_item_list&id=1&params=${params}`
  const { json } = await send(test.url, { path, headers: { cookie: bob.cookie } })
  expect(json).toMatchObject({ result: { items: [{ position: 'a' }] } })
  expect((await send(test.url, { path })).status).toBe(401)
  expect(await reasonOf(test.client().cell_item_list({ parent_id }))).toBe('authentication_required')
})

it.each<[object, string]>([
  [{}, 'cell_item_list_requires_parent_or_child'],
  [{ parent_id: missing, child_id: missing }, 'cell_item_list_requires_parent_or_child'],
  [{ parent_id: null, child_id: missing }, 'invalid_params'],
  [{ parent_id: 'x' }, 'invalid_params'],
  [{ parent_id: 'x', child_id: missing }, 'invalid_params'],
  [{ source_id: missing }, 'invalid_params'],
  [{ parent_id: missing, limit: 0 }, 'invalid_params'],
  [{ parent_id: missing, limit: 501 }, 'invalid_params'],
  [{ parent_id: missing, limit: 1.5 }, 'invalid_params'],
  [{ parent_id: missing, limit: '10' }, 'invalid_params'],
  [{ parent_id: missing, offset: 0 }, 'invalid_params'],
  [{ parent_id: missing, position_after: 'a' }, 'invalid_params'],
  [{ parent_id: missing, cursor: '' }, 'invalid_params'],
  [{ limit: 0 }, 'invalid_params'],
  [{ parent_id: missing, limit: null, cursor: null }, 'cell_not_found'],
  [{ parent_id: missing, limit: 500 }, 'cell_not_found'],
])('%j is refused: %s', async (input, reason) => {
  expect(await reasonOf(bob.client.cell_item_list(input))).toBe(reason)
})

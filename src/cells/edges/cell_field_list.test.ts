import { afterAll, beforeAll, expect, test as it } from 'vitest'
import { cellRow, fieldRow } from '../../../test/helpers/cell-rows.ts'
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

it('forward: all fields in byte order of their names, with exactly their keys, and no audit row', async () => {
  const source_id = await cellRow(test, open)
  for (const name of ['b', 'a_b', 'ab', 'a', 'a1']) await fieldRow(test, source_id, name, source_id)
  const { fields, next_cursor } = await scenario(test, () =>
    bob.client.cell_field_list({ source_id: source_id.toUpperCase() }),
  )
  expect(fields.map(({ name }) => name)).toEqual(['a', 'a1', 'a_b', 'ab', 'b'])
  const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(fields[0]).toEqual({ source_id, name: 'a', target_id: source_id, created_at })
  expect(next_cursor).toBeNull()
})

it('reverse: with exactly the same keys', async () => {
  const [source_id, target_id] = [await cellRow(test, open), await cellRow(test, open)]
  await fieldRow(test, source_id, 'z', target_id)
  await test.service.app.db.run(
    sql`update cell_field set created_at = '2026-01-01'::timestamptz where source_id = ${source_id}`,
  )
  expect((await bob.client.cell_field_list({ target_id })).fields).toEqual([
    { source_id, name: 'z', target_id, created_at: '2026-01-01T00:00:00.000Z' },
  ])
})

it('of a cell without fields: an empty list', async () => {
  const id = await cellRow(test, open)
  for (const input of [{ source_id: id }, { target_id: id }])
    expect(await bob.client.cell_field_list(input)).toEqual({ fields: [], next_cursor: null })
})

it('is reachable by GET, and by nobody without a credential', async () => {
  const source_id = await cellRow(test, open)
  await fieldRow(test, source_id, 'a', source_id)
  const params = encodeURIComponent(JSON.stringify({ source_id }))
  const path = `/api/rpc?method=cell_field_list&id=1&params=${params}`
  const { json } = await send(test.url, { path, headers: { cookie: bob.cookie } })
  expect(json).toMatchObject({ result: { fields: [{ name: 'a' }] } })
  expect((await send(test.url, { path })).status).toBe(401)
  expect(await reasonOf(test.client().cell_field_list({ source_id }))).toBe('authentication_required')
})

it.each<[object, string]>([
  [{}, 'cell_field_list_requires_source_or_target'],
  [{ source_id: missing, target_id: missing }, 'cell_field_list_requires_source_or_target'],
  [{ source_id: null, target_id: missing }, 'invalid_params'],
  [{ source_id: 'x' }, 'invalid_params'],
  [{ source_id: 'x', target_id: missing }, 'invalid_params'],
  [{ parent_id: missing }, 'invalid_params'],
  [{ source_id: missing, limit: 0 }, 'invalid_params'],
  [{ source_id: missing, limit: 501 }, 'invalid_params'],
  [{ source_id: missing, limit: 1.5 }, 'invalid_params'],
  [{ source_id: missing, limit: '10' }, 'invalid_params'],
  [{ source_id: missing, offset: 0 }, 'invalid_params'],
  [{ source_id: missing, name_after: 'a' }, 'invalid_params'],
  [{ source_id: missing, cursor: '' }, 'invalid_params'],
  [{ limit: 0 }, 'invalid_params'],
  [{ source_id: missing, limit: null, cursor: null }, 'cell_not_found'],
  [{ source_id: missing, limit: 500 }, 'cell_not_found'],
])('%j is refused: %s', async (input, reason) => {
  expect(await reasonOf(bob.client.cell_field_list(input))).toBe(reason)
})

import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { rpc, send } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

const missing = '11111111-1111-4111-8111-111111111111'
const open = { visibility: 'public' } as const
let test: TestService
let ada: TestAccount
let bob: TestAccount
let root: TestAccount
beforeAll(async () => {
  test = await testService()
  ;[ada, bob, root] = await Promise.all([test.account(), test.account(), test.account({ roles: ['admin'] })])
})
afterAll(() => test.close())

/** A cell of each kind, by what it is to bob. */
async function kinds() {
  const shared = await cellRow(test, { created_by: ada.actor_id })
  await test.cellGrant(shared, 'viewer', { actor_id: bob.actor_id })
  return {
    deleted: await cellRow(test, { ...open, deleted_at: '2026-01-01T00:00:00Z' }),
    foreign: await cellRow(test, { created_by: ada.actor_id }),
    own: await cellRow(test, { created_by: bob.actor_id }),
    seen: await cellRow(test, open),
    shared,
    system: await cellRow(test, {}),
  }
}

describe('forward', () => {
  it('all items in byte order of their positions: digits, upper case, lower case, with exactly their keys, and no audit row', async () => {
    const parent_id = await cellRow(test, open)
    for (const position of ['V', 'a', 'B', '9', '90', '8z'])
      await itemRow(test, parent_id, position, parent_id)
    const { items, next_cursor } = await scenario(test, () =>
      bob.client.cell_item_list({ parent_id: parent_id.toUpperCase() }),
    )
    expect(items.map(({ position }) => position)).toEqual(['8z', '9', '90', 'B', 'V', 'a'])
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(items[0]).toEqual({ parent_id, position: '8z', child_id: parent_id, created_at })
    expect(next_cursor).toBeNull()
  })

  it('those that lead to cells the caller sees, as in the bundle', async () => {
    const parent_id = await cellRow(test, open)
    for (const [position, id] of Object.entries(await kinds())) await itemRow(test, parent_id, position, id)
    const positions = async ({ client }: TestAccount) => {
      const { items } = await client.cell_item_list({ parent_id })
      expect((await client.cell_get({ id: parent_id })).items).toEqual(items)
      return items.map(({ position }) => position)
    }
    expect(await positions(bob)).toEqual(['own', 'seen', 'shared'])
    expect(await positions(ada)).toEqual(['foreign', 'seen', 'shared'])
    expect(await positions(root)).toEqual(['foreign', 'own', 'seen', 'shared', 'system'])
  })
})

describe('reverse', () => {
  it('by time, then parent, then position', async () => {
    const child_id = await cellRow(test, open)
    const [one, two] = [await cellRow(test, open), await cellRow(test, open)].sort() as [string, string]
    for (const [parent, position, time] of [
      [two, 'z', '2026-01-01'],
      [one, 'b', '2026-01-02'],
      [two, 'a', '2026-01-02'],
      [one, 'a', '2026-01-02'],
      [one, 'c', '2026-01-03'],
    ] as const) {
      await itemRow(test, parent, position, child_id)
      await test.service.app.db.run(sql`
        update cell_item set created_at = ${time}::timestamptz where parent_id = ${parent} and position = ${position}`)
    }
    const { items } = await bob.client.cell_item_list({ child_id })
    expect(items.map(({ parent_id, position }) => [parent_id, position])).toEqual([
      [two, 'z'],
      [one, 'a'],
      [one, 'b'],
      [two, 'a'],
      [one, 'c'],
    ])
    expect(items[0]).toEqual({
      parent_id: two,
      position: 'z',
      child_id,
      created_at: '2026-01-01T00:00:00.000Z',
    })
  })

  it('those whose parent the caller sees; the child has no say beyond being seen itself', async () => {
    const child_id = await cellRow(test, open)
    for (const [position, id] of Object.entries(await kinds())) await itemRow(test, id, position, child_id)
    const positions = async ({ client }: TestAccount) =>
      (await client.cell_item_list({ child_id })).items.map(({ position }) => position).sort()
    expect(await positions(bob)).toEqual(['own', 'seen', 'shared'])
    expect(await positions(ada)).toEqual(['foreign', 'seen', 'shared'])
    expect(await positions(root)).toEqual(['foreign', 'own', 'seen', 'shared', 'system'])
  })

  it('a cell that leads to itself is its own parent', async () => {
    const child_id = await cellRow(test, open)
    await itemRow(test, child_id, 'me', child_id)
    expect((await bob.client.cell_item_list({ child_id })).items).toMatchObject([
      { parent_id: child_id, position: 'me' },
    ])
  })
})

it('of a cell without items: an empty list', async () => {
  const id = await cellRow(test, open)
  for (const input of [{ parent_id: id }, { child_id: id }])
    expect(await bob.client.cell_item_list(input)).toEqual({ items: [], next_cursor: null })
})

it('of a hidden or deleted cell: byte for byte as of a missing one', async () => {
  const { foreign, deleted } = await kinds()
  const bare = async (params: object) => {
    const { status, headers, text } = await rpc(
      test.url,
      { jsonrpc: '2.0', id: 1, method: 'cell_item_list', params },
      { 'x-request-id': 'same', cookie: bob.cookie },
    )
    const { date: _, ...rest } = headers
    return { status, rest, text }
  }
  const wanted = await bare({ parent_id: missing })
  expect(wanted).toMatchObject({ status: 404, text: expect.stringContaining('cell_not_found') })
  for (const id of [missing, foreign, deleted, bob.actor_id])
    for (const params of [{ parent_id: id }, { child_id: id }]) expect(await bare(params)).toEqual(wanted)
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

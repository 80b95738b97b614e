import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow } from '../../test/helpers/cell-rows.ts'
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
  it('all fields in byte order of their names, with exactly their keys, and no audit row', async () => {
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

  it('those that lead to cells the caller sees, as in the bundle', async () => {
    const source_id = await cellRow(test, open)
    for (const [name, id] of Object.entries(await kinds())) await fieldRow(test, source_id, name, id)
    const names = async ({ client }: TestAccount) => {
      const { fields } = await client.cell_field_list({ source_id })
      expect((await client.cell_get({ id: source_id })).fields).toEqual(fields)
      return fields.map(({ name }) => name)
    }
    expect(await names(bob)).toEqual(['own', 'seen', 'shared'])
    expect(await names(ada)).toEqual(['foreign', 'seen', 'shared'])
    expect(await names(root)).toEqual(['foreign', 'own', 'seen', 'shared', 'system'])
  })
})

describe('reverse', () => {
  it('by time, then source, then name', async () => {
    const target_id = await cellRow(test, open)
    const [one, two] = [await cellRow(test, open), await cellRow(test, open)].sort() as [string, string]
    for (const [source, name, time] of [
      [two, 'z', '2026-01-01'],
      [one, 'b', '2026-01-02'],
      [two, 'a', '2026-01-02'],
      [one, 'a', '2026-01-02'],
      [one, 'c', '2026-01-03'],
    ] as const) {
      await fieldRow(test, source, name, target_id)
      await test.service.app.db.run(sql`
        update cell_field set created_at = ${time}::timestamptz where source_id = ${source} and name = ${name}`)
    }
    const { fields } = await bob.client.cell_field_list({ target_id })
    expect(fields.map(({ source_id, name }) => [source_id, name])).toEqual([
      [two, 'z'],
      [one, 'a'],
      [one, 'b'],
      [two, 'a'],
      [one, 'c'],
    ])
    expect(fields[0]).toEqual({
      source_id: two,
      name: 'z',
      target_id,
      created_at: '2026-01-01T00:00:00.000Z',
    })
  })

  it('those whose source the caller sees; the target has no say beyond being seen itself', async () => {
    const target_id = await cellRow(test, open)
    for (const [name, id] of Object.entries(await kinds())) await fieldRow(test, id, name, target_id)
    const names = async ({ client }: TestAccount) =>
      (await client.cell_field_list({ target_id })).fields.map(({ name }) => name).sort()
    expect(await names(bob)).toEqual(['own', 'seen', 'shared'])
    expect(await names(ada)).toEqual(['foreign', 'seen', 'shared'])
    expect(await names(root)).toEqual(['foreign', 'own', 'seen', 'shared', 'system'])
  })

  it('a cell that leads to itself is its own source', async () => {
    const target_id = await cellRow(test, open)
    await fieldRow(test, target_id, 'me', target_id)
    expect((await bob.client.cell_field_list({ target_id })).fields).toMatchObject([
      { source_id: target_id, name: 'me' },
    ])
  })
})

it('of a cell without fields: an empty list', async () => {
  const id = await cellRow(test, open)
  for (const input of [{ source_id: id }, { target_id: id }])
    expect(await bob.client.cell_field_list(input)).toEqual({ fields: [], next_cursor: null })
})

it('of a hidden or deleted cell: byte for byte as of a missing one', async () => {
  const { foreign, deleted } = await kinds()
  const bare = async (params: object) => {
    const { status, headers, text } = await rpc(
      test.url,
      { jsonrpc: '2.0', id: 1, method: 'cell_field_list', params },
      { 'x-request-id': 'same', cookie: bob.cookie },
    )
    const { date: _, ...rest } = headers
    return { status, rest, text }
  }
  const wanted = await bare({ source_id: missing })
  expect(wanted).toMatchObject({ status: 404, text: expect.stringContaining('cell_not_found') })
  for (const id of [missing, foreign, deleted, bob.actor_id])
    for (const params of [{ source_id: id }, { target_id: id }]) expect(await bare(params)).toEqual(wanted)
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

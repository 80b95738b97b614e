import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { rpc } from '../../../test/helpers/http.ts'
import { type Sql, sql } from '../../db/db.ts'
import { type TestAccount, type TestService, testService } from '../../testing/index.ts'

/** What the lists of fields and items have in common; what differs is tested per method. */

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

type Row = Record<string, string>
type Ends = { from?: string; to?: string }
type Kind = {
  row: typeof fieldRow
  input(ends: Ends): object
  list(by: TestAccount, ends: Ends): Promise<Row[]>
  bundle(by: TestAccount, id: string): Promise<Row[]>
  setTime(from: string, key: string, time: string): Sql
}
const keyOf = (row: Row) => row.name ?? row.position
/** The cell that an edge belongs to, its name or position there, and the cell that it leads to. */
const edgeOf = (row: Row) => [row.source_id ?? row.parent_id, keyOf(row), row.target_id ?? row.child_id]
const kinds: [string, Kind][] = [
  [
    'cell_field_list',
    {
      row: fieldRow,
      input: ({ from: source_id, to: target_id }) => ({ source_id, target_id }),
      list: async ({ client }, { from: source_id, to: target_id }) =>
        (await client.cell_field_list({ source_id, target_id })).fields,
      bundle: async ({ client }, id) => (await client.cell_get({ id })).fields,
      setTime: (from, key, time) => sql`
        update cell_field set created_at = ${time}::timestamptz where source_id = ${from} and name = ${key}`,
    },
  ],
  [
    'cell_item_list',
    {
      row: itemRow,
      input: ({ from: parent_id, to: child_id }) => ({ parent_id, child_id }),
      list: async ({ client }, { from: parent_id, to: child_id }) =>
        (await client.cell_item_list({ parent_id, child_id })).items,
      bundle: async ({ client }, id) => (await client.cell_get({ id })).items,
      setTime: (from, key, time) => sql`
        update cell_item set created_at = ${time}::timestamptz where parent_id = ${from} and position = ${key}`,
    },
  ],
]

/** One cell for each way that bob can see it, or cannot. */
async function cells() {
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

describe.each(kinds)('%s', (method, { row, input, list, bundle, setTime }) => {
  it('forward: those that lead to cells the caller sees, as in the bundle', async () => {
    const from = await cellRow(test, open)
    for (const [key, id] of Object.entries(await cells())) await row(test, from, key, id)
    const keys = async (by: TestAccount) => {
      const rows = await list(by, { from })
      expect(await bundle(by, from)).toEqual(rows)
      return rows.map(keyOf)
    }
    expect(await keys(bob)).toEqual(['own', 'seen', 'shared'])
    expect(await keys(ada)).toEqual(['foreign', 'seen', 'shared'])
    expect(await keys(root)).toEqual(['foreign', 'own', 'seen', 'shared', 'system'])
  })

  it('reverse: by time, then the cell they are of, then name or position', async () => {
    const to = await cellRow(test, open)
    const [one, two] = [await cellRow(test, open), await cellRow(test, open)].sort() as [string, string]
    for (const [from, key, time] of [
      [two, 'z', '2026-01-01'],
      [one, 'b', '2026-01-02'],
      [two, 'a', '2026-01-02'],
      [one, 'a', '2026-01-02'],
      [one, 'c', '2026-01-03'],
    ] as const) {
      await row(test, from, key, to)
      await test.service.app.db.run(setTime(from, key, time))
    }
    expect((await list(bob, { to })).map(edgeOf)).toEqual([
      [two, 'z', to],
      [one, 'a', to],
      [one, 'b', to],
      [two, 'a', to],
      [one, 'c', to],
    ])
  })

  it('reverse: those of cells the caller sees; the other end has no say beyond being seen itself', async () => {
    const to = await cellRow(test, open)
    for (const [key, id] of Object.entries(await cells())) await row(test, id, key, to)
    const keys = async (by: TestAccount) => (await list(by, { to })).map(keyOf).sort()
    expect(await keys(bob)).toEqual(['own', 'seen', 'shared'])
    expect(await keys(ada)).toEqual(['foreign', 'seen', 'shared'])
    expect(await keys(root)).toEqual(['foreign', 'own', 'seen', 'shared', 'system'])
  })

  it('reverse: a cell that leads to itself is found from itself', async () => {
    const id = await cellRow(test, open)
    await row(test, id, 'me', id)
    expect((await list(bob, { to: id })).map(edgeOf)).toEqual([[id, 'me', id]])
  })

  it('of a hidden or deleted cell: byte for byte as of a missing one', async () => {
    const { foreign, deleted } = await cells()
    const bare = async (ends: Ends) => {
      const { status, headers, text } = await rpc(
        test.url,
        { jsonrpc: '2.0', id: 1, method, params: input(ends) },
        { 'x-request-id': 'same', cookie: bob.cookie },
      )
      const { date: _, ...rest } = headers
      return { status, rest, text }
    }
    const wanted = await bare({ from: missing })
    expect(wanted).toMatchObject({ status: 404, text: expect.stringContaining('cell_not_found') })
    for (const id of [missing, foreign, deleted, bob.actor_id])
      for (const ends of [{ from: id }, { to: id }]) expect(await bare(ends)).toEqual(wanted)
  })
})

import { describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { send } from '../../../test/helpers/http.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

/** `cell_field_list` and `cell_item_list`. */

const missing = '11111111-1111-4111-8111-111111111111'
const open = { visibility: 'public' } as const
const test = await serviceForFile()
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

type Row = Record<string, string>
type Ends = { from?: string; to?: string }
const keyOf = (row: Row) => row.name ?? row.position
/** The cell that an edge belongs to, its name or position there, and the cell that it leads to. */
const edgeOf = (row: Row) => [row.source_id ?? row.parent_id, keyOf(row), row.target_id ?? row.child_id]
const kinds = [
  {
    method: 'cell_field_list',
    relation: 'fields',
    row: fieldRow,
    input: ({ from: source_id, to: target_id }: Ends) => ({ source_id, target_id }),
    edge: (source_id: string, name: string, target_id: string) => ({ source_id, name, target_id }),
    stored: ['b', 'a_b', 'ab', 'a', 'a1'],
    sorted: ['a', 'a1', 'a_b', 'ab', 'b'],
    reason: 'cell_field_list_requires_source_or_target',
    unknown: [{ parent_id: missing }, { source_id: missing, name_after: 'a' }],
  },
  {
    method: 'cell_item_list',
    relation: 'items',
    row: itemRow,
    input: ({ from: parent_id, to: child_id }: Ends) => ({ parent_id, child_id }),
    edge: (parent_id: string, position: string, child_id: string) => ({ parent_id, position, child_id }),
    // Digits, upper case, lower case.
    stored: ['V', 'a', 'B', '9', '90', '8z'],
    sorted: ['8z', '9', '90', 'B', 'V', 'a'],
    reason: 'cell_item_list_requires_parent_or_child',
    unknown: [{ source_id: missing }, { parent_id: missing, position_after: 'a' }],
  },
] as const

/** One cell for each way in which bob can or cannot see it. */
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

describe.each(kinds)('$method', (kind) => {
  const { method, relation, row, input, edge } = kind
  const call = (client: TestAccount['client'], sent: object) =>
    client[method](sent) as Promise<Record<string, unknown>>
  const list = async ({ client }: TestAccount, ends: Ends) =>
    (await call(client, input(ends)))[relation] as Row[]
  const bundle = async ({ client }: TestAccount, id: string): Promise<Row[]> =>
    (await client.cell_get({ id }))[relation]
  const [near, key] = Object.keys(edge('', '', '')) as [string, string]
  const setTime = (from: string, at: string, time: string) => sql`
    update ${sql.raw(method.replace('_list', ''))} set created_at = ${time}::timestamptz
    where ${sql.raw(near)} = ${from} and ${sql.raw(key)} = ${at}`

  it('forward: all edges in byte order of their keys, with exactly their keys, and no audit row', async () => {
    const from = await cellRow(test, open)
    for (const key of kind.stored) await row(test, from, key, from)
    const { [relation]: edges, next_cursor } = await scenario(test, () =>
      call(bob.client, input({ from: from.toUpperCase() })),
    )
    expect((edges as Row[]).map(keyOf)).toEqual(kind.sorted)
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect((edges as Row[])[0]).toEqual({ ...edge(from, kind.sorted[0] as string, from), created_at })
    expect(next_cursor).toBeNull()
    expect(await bundle(bob, from)).toEqual(edges)
  })

  it('reverse: with exactly the same keys', async () => {
    const [from, to] = [await cellRow(test, open), await cellRow(test, open)]
    await row(test, from, 'z', to)
    await test.service.app.db.run(setTime(from, 'z', '2026-01-01'))
    expect((await call(bob.client, input({ to })))[relation]).toEqual([
      { ...edge(from, 'z', to), created_at: '2026-01-01T00:00:00.000Z' },
    ])
  })

  it('of a cell without edges: an empty list', async () => {
    const id = await cellRow(test, open)
    for (const ends of [{ from: id }, { to: id }])
      expect(await call(bob.client, input(ends))).toEqual({ [relation]: [], next_cursor: null })
  })

  it('can be called by GET, but not without a credential', async () => {
    const from = await cellRow(test, open)
    await row(test, from, 'a', from)
    const params = encodeURIComponent(JSON.stringify(input({ from })))
    const path = `/api/rpc?method=${method}&id=1&params=${params}`
    const { json } = await send(test.url, { path, headers: { cookie: bob.cookie } })
    expect(json).toMatchObject({ result: { [relation]: [edge(from, 'a', from)] } })
    expect((await send(test.url, { path })).status).toBe(401)
    expect(await reasonOf(call(test.client(), input({ from })))).toBe('authentication_required')
  })

  it.each<[object, string]>([
    [{}, kind.reason],
    [input({ from: missing, to: missing }), kind.reason],
    [input({ from: null as never, to: missing }), 'invalid_params'],
    [input({ from: 'x' }), 'invalid_params'],
    [input({ from: 'x', to: missing }), 'invalid_params'],
    [{ ...input({ from: missing }), limit: 0 }, 'invalid_params'],
    [{ ...input({ from: missing }), limit: 501 }, 'invalid_params'],
    [{ ...input({ from: missing }), limit: 1.5 }, 'invalid_params'],
    [{ ...input({ from: missing }), limit: '10' }, 'invalid_params'],
    [{ ...input({ from: missing }), offset: 0 }, 'invalid_params'],
    [{ ...input({ from: missing }), cursor: '' }, 'invalid_params'],
    [{ limit: 0 }, 'invalid_params'],
    ...kind.unknown.map((one): [object, string] => [one, 'invalid_params']),
    [{ ...input({ from: missing }), limit: null, cursor: null }, 'cell_not_found'],
    [{ ...input({ from: missing }), limit: 500 }, 'cell_not_found'],
  ])('%j is refused: %s', async (sent, reason) => {
    expect(await reasonOf(call(bob.client, sent))).toBe(reason)
  })

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

  it('reverse: by timestamp, then anchor, then name or position', async () => {
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

  it('reverse: those whose anchor the caller may view; rights on the far cell matter only for viewing it', async () => {
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
})

it('a caller with many roles sees the children that one of them opens, however many others may see them', async () => {
  const dean = await test.account()
  const { db } = test.service.app
  const scope = '22222222-2222-4222-8222-222222222222'
  await db.run(sql`
    insert into role_grant (actor_id, role) select ${dean.actor_id}::uuid, 'dean ' || i from generate_series(1, 30) i`)
  await db.run(sql`
    insert into role_grant (actor_id, role, scope_kind, scope_id)
    values (${dean.actor_id}::uuid, 'tutor', 'room', ${scope}::uuid)`)
  await db.run(sql`
    insert into role_grant (actor_id, role, revoked_at) values (${dean.actor_id}::uuid, 'ended', now())`)
  const parent = await cellRow(test, { created_by: dean.actor_id })
  const seen: string[] = []
  const all: string[] = []
  for (const others of [0, 1, 64, 70])
    for (const [role, scope_id] of [
      [null, null],
      ['dean 1', null],
      ['dean 30', null],
      ['tutor', scope],
      ['tutor', missing],
      ['tutor', null],
      ['ended', null],
    ] as const) {
      const child = await cellRow(test, { created_by: ada.actor_id })
      await db.run(sql`
        insert into cell_grant (cell_id, level, role, cell_created_at)
        select ${child}::uuid, 'viewer', 'other ' || i, now() from generate_series(1, ${others}::int) i`)
      if (role !== null) await test.cellGrant(child, 'viewer', { role, scope_id })
      if (role !== null && role !== 'ended' && scope_id !== missing) seen.push(child)
      await itemRow(test, parent, `p${String(all.length).padStart(2, '0')}`, child)
      all.push(child)
    }
  const { client } = dean
  for (const id of all)
    expect(await reasonOf(client.cell_get({ id }))).toBe(seen.includes(id) ? 'ok' : 'cell_not_found')
  expect((await client.cell_item_list({ parent_id: parent })).items.map(({ child_id }) => child_id)).toEqual(
    seen,
  )
  expect((await client.cell_list({ ids: all })).cells.map(({ id }) => id).sort()).toEqual(seen.toSorted())
  expect(await client.cell_clone_preview({ source_id: parent, deep: true })).toMatchObject({
    cells: 1 + seen.length,
    edges: seen.length,
  })
  expect((await client.cell_clone({ source_id: parent })).cloned_count).toBe(1)
  const { cloned_count } = await client.cell_clone({ source_id: parent, deep: true })
  expect(cloned_count).toBe(1 + seen.length)
})

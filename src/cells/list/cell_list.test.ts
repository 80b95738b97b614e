import { randomUUID } from 'node:crypto'
import { describe, expect, test as it } from 'vitest'
import { cellRow, cellRows, grantRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

type Input = Parameters<TestAccount['client']['cell_list']>[0]
const ids = async (client: TestAccount['client'], input?: Input): Promise<string[]> =>
  (await client.cell_list({ limit: 200, ...input })).cells.map(({ id }) => id)

/** A kind that no other test uses, so that the tests of this file do not see each other's cells. */
const ownKind = () => `kind ${randomUUID()}`

it('returns cells and cursor, newest first, and leaves no audit row', async () => {
  const kind = ownKind()
  const first = await cellRow(test, { kind, created_by: ada.actor_id, created_at: '2026-01-01T00:00:00Z' })
  const second = await cellRow(test, { kind, created_by: ada.actor_id, created_at: '2026-01-02T00:00:00Z' })
  const answer = await scenario(test, () => ada.client.cell_list({ kind }))
  const of = async (id: string) => (await ada.client.cell_get({ id })).cell
  expect(answer).toEqual({ cells: [await of(second), await of(first)], next_cursor: null })
})

describe('input', () => {
  const id = '11111111-1111-4111-8111-111111111111'
  it.each<[object, string]>([
    [{}, 'ok'],
    [{ limit: 1 }, 'ok'],
    [{ limit: 200 }, 'ok'],
    [{ limit: null, cursor: null }, 'ok'],
    [{ limit: 0 }, 'invalid_params'],
    [{ limit: 201 }, 'invalid_params'],
    [{ limit: 1.5 }, 'invalid_params'],
    [{ limit: '10' }, 'invalid_params'],
    [{ offset: 1 }, 'invalid_params'],
    [{ name_after: 'x' }, 'invalid_params'],
    [{ order_by: 'id' }, 'invalid_params'],
    [{ order_direction: 'DESC' }, 'invalid_params'],
    [{ order_by: null }, 'invalid_params'],
    [{ kind: null }, 'invalid_params'],
    [{ kind: 'x'.repeat(129) }, 'invalid_params'],
    [{ visibility: 'all' }, 'invalid_params'],
    [{ path_prefix: '' }, 'invalid_params'],
    [{ path_prefix: '\0' }, 'invalid_params'],
    [{ shared_with: 'you' }, 'invalid_params'],
    [{ created_by: 'x' }, 'invalid_params'],
    [{ ids: [] }, 'ok'],
    [{ ids: null }, 'invalid_params'],
    [{ ids: ['x'] }, 'invalid_params'],
    [{ ids: Array(200).fill(id) }, 'ok'],
    [{ ids: Array(201).fill(id) }, 'invalid_params'],
    [{ acting: null }, 'invalid_params'],
  ])('%j: %s', async (input, reason) => {
    expect(await reasonOf(ada.client.cell_list(input as Input))).toBe(reason)
  })

  it('filters that need a caller are refused for anonymous callers, whatever they name', async () => {
    const reasons = await Promise.all(
      [
        { created_by: id },
        { shared_with: 'me' as const },
        { created_by: id, ids: [] },
        { shared_with: 'me' as const, ids: [] },
      ].map((input) => reasonOf(test.client().cell_list(input))),
    )
    expect(reasons).toEqual([
      'cell_list_created_by_requires_auth',
      'cell_list_shared_with_requires_auth',
      'cell_list_created_by_requires_auth',
      'cell_list_shared_with_requires_auth',
    ])
    // Field-level issues win over rules across fields.
    expect(await reasonOf(test.client().cell_list({ created_by: id, limit: 0 }))).toBe('invalid_params')
  })
})

describe('ids', () => {
  it('give the cells that are visible among them, once, in the order of the list', async () => {
    const kind = ownKind()
    const mine = await cellRow(test, { kind, created_by: ada.actor_id, created_at: '2026-01-01T00:00:00Z' })
    const open = await cellRow(test, { kind, visibility: 'public', created_at: '2026-01-02T00:00:00Z' })
    const hidden = await cellRow(test, { kind, created_by: bob.actor_id })
    const deleted = await cellRow(test, {
      kind,
      created_by: ada.actor_id,
      deleted_at: '2026-01-01T00:00:00Z',
    })
    const named = [hidden, mine, deleted, mine.toUpperCase(), open, randomUUID(), ada.actor_id]
    expect(await ids(ada.client, { ids: named })).toEqual([open, mine])
    expect(await ids(ada.client, { ids: named, order_direction: 'asc' })).toEqual([mine, open])
    expect(await ids(test.client(), { ids: named })).toEqual([open])
    expect(await ids(root.client, { ids: named })).toHaveLength(3)
    expect(await ids(ada.client, { ids: named, visibility: 'private' })).toEqual([mine])
    expect(await ids(ada.client, { ids: [mine], kind: 'other' })).toEqual([])
  })

  it('none of them: nothing', async () => {
    expect(await ada.client.cell_list({ ids: [] })).toEqual({ cells: [], next_cursor: null })
    expect(await ada.client.cell_list({ ids: [], shared_with: 'me' })).toEqual({
      cells: [],
      next_cursor: null,
      cell_grants: {},
    })
  })

  it('without limit all of them are one page; with one they are paged', async () => {
    const kind = ownKind()
    await cellRows(test, 60, { kind: sql`${kind}::text`, visibility: sql`'public'` })
    const all = await ids(test.client(), { kind })
    const page = await test.client().cell_list({ ids: all })
    expect(page).toMatchObject({ cells: { length: 60 }, next_cursor: null })
    const first = await test.client().cell_list({ ids: all, limit: 40 })
    const shuffled = [...all, all[0] as string].reverse()
    const rest = await test.client().cell_list({ ids: shuffled, cursor: first.next_cursor })
    expect([...first.cells, ...rest.cells].map(({ id }) => id)).toEqual(all)
    expect(rest.next_cursor).toBe(null)
  })
})

it('an empty kind matches nothing', async () => {
  await cellRow(test, { kind: null, visibility: 'public' })
  const empty = { cells: [], next_cursor: null }
  expect(await test.client().cell_list({ kind: '' })).toEqual(empty)
  expect(await ada.client.cell_list({ kind: '', shared_with: 'me' })).toEqual({ ...empty, cell_grants: {} })
  expect(await reasonOf(test.client().cell_list({ kind: '', shared_with: 'me' }))).toBe(
    'cell_list_shared_with_requires_auth',
  )
})

it('kind is exact and case-sensitive', async () => {
  const kind = ownKind()
  const exact = await cellRow(test, { kind, visibility: 'public' })
  for (const other of [`${kind} `, kind.toUpperCase(), kind.slice(0, -1)])
    await cellRow(test, { kind: other, visibility: 'public' })
  expect(await ids(ada.client, { kind })).toEqual([exact])
})

describe('created_by', () => {
  it('may name any actor; the list has what the caller may view', async () => {
    const kind = ownKind()
    const eve = await test.account()
    const open = await cellRow(test, { kind, visibility: 'public', created_by: eve.actor_id })
    const shared = await cellRow(test, { kind, created_by: eve.actor_id })
    const hidden = await cellRow(test, { kind, created_by: eve.actor_id })
    await cellRow(test, { kind, created_by: ada.actor_id })
    await cellRow(test, { kind, visibility: 'public' })
    await test.cellGrant(shared, 'viewer', { actor_id: ada.actor_id })
    const sorted = async (client: TestAccount['client'], input: Input) => (await ids(client, input)).sort()
    const created_by = eve.actor_id.toUpperCase()
    expect(await sorted(ada.client, { created_by })).toEqual([open, shared].sort())
    expect(await sorted(bob.client, { created_by })).toEqual([open])
    expect(await sorted(eve.client, { created_by })).toEqual([open, shared, hidden].sort())
    expect(await sorted(root.client, { created_by })).toEqual([open, shared, hidden].sort())
    expect(await sorted(eve.client, { created_by, visibility: 'private', kind })).toEqual(
      [shared, hidden].sort(),
    )
    expect(await sorted(eve.client, { created_by, kind: 'other' })).toEqual([])
    expect(await ids(eve.client, { created_by: randomUUID() })).toEqual([])
  })
})

describe('shared_with me', () => {
  it('lists what a grant admits to, without own cells, with the admitting grants', async () => {
    const [me, other] = await Promise.all([test.account(), test.account()])
    const scope_id = randomUUID()
    await test.roleGrant({ actor_id: me.actor_id, role: 'team', scope_kind: 'org', scope_id })
    const own = await cellRow(test, { created_by: me.actor_id })
    const direct = await cellRow(test, { created_by: other.actor_id, created_at: '2026-01-01T00:00:00Z' })
    const open = await cellRow(test, { visibility: 'public', created_at: '2026-01-02T00:00:00Z' })
    const byRole = await cellRow(test, { created_at: '2026-01-03T00:00:00Z' })
    const elsewhere = await cellRow(test, {})
    const unshared = await cellRow(test, { visibility: 'public' })
    const deleted = await cellRow(test, { deleted_at: '2026-01-01T00:00:00Z' })
    const toMe = { actor_id: me.actor_id }
    for (const id of [own, direct, open, deleted]) await grantRow(test, id, 'viewer', toMe)
    await grantRow(test, direct, 'editor', { actor_id: other.actor_id })
    await test.cellGrant(direct, 'editor', { role: 'else', scope_id: null })
    await test.cellGrant(byRole, 'viewer', { role: 'team', scope_id: null })
    await test.cellGrant(byRole, 'editor', { role: 'team', scope_id })
    await test.cellGrant(byRole, 'editor', { role: 'team', scope_id: randomUUID() })
    await test.cellGrant(elsewhere, 'viewer', { role: 'team', scope_id: randomUUID() })

    const page = await me.client.cell_list({ shared_with: 'me' })
    expect(page.cells.map(({ id }) => id)).toEqual([byRole, open, direct])
    const grants = page.cell_grants ?? {}
    expect(Object.keys(grants).sort()).toEqual([byRole, open, direct].sort())
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/)
    expect(grants[direct]).toEqual([
      {
        id: expect.any(String),
        cell_id: direct,
        level: 'viewer',
        actor_id: me.actor_id,
        role: null,
        scope_id: null,
        granted_by: null,
        created_at,
      },
    ])
    expect(grants[byRole]).toMatchObject([
      { level: 'viewer', role: 'team', scope_id: null, actor_id: null },
      { level: 'editor', role: 'team', scope_id, actor_id: null },
    ])
    expect(await ids(me.client, { shared_with: 'me', visibility: 'public' })).toEqual([open])
    expect(await ids(me.client, { shared_with: 'me', created_by: other.actor_id })).toEqual([direct])
    expect(await ids(me.client, { shared_with: 'me', created_by: me.actor_id })).toEqual([])
    expect(await ids(me.client, { shared_with: 'me', ids: [own, direct, elsewhere, unshared] })).toEqual([
      direct,
    ])
    expect(await me.client.cell_list({ shared_with: 'me', limit: 1, order_by: 'updated_at' })).toMatchObject({
      cells: [{ id: byRole }],
      cell_grants: { [byRole]: { length: 2 } },
    })
  })

  it('gives an admin no more than the grants of the acting actor do', async () => {
    await cellRow(test, { visibility: 'public' })
    expect(await root.client.cell_list({ shared_with: 'me' })).toEqual({
      cells: [],
      next_cursor: null,
      cell_grants: {},
    })
    const shared = await cellRow(test, {})
    await test.cellGrant(shared, 'viewer', { actor_id: root.actor_id })
    expect(await ids(root.client, { shared_with: 'me' })).toEqual([shared])
  })

  it('cell_grants is absent without it', async () => {
    expect(Object.keys(await ada.client.cell_list())).toEqual(['cells', 'next_cursor'])
  })
})

describe('order', () => {
  it('by updated_at takes the creation of cells that were never updated; ties go by id', async () => {
    const kind = ownKind()
    const row = (id: string, created_at: string, updated_at?: string) =>
      cellRow(test, { id, kind, visibility: 'public', created_at, updated_at: updated_at ?? null })
    const at = (second: number) => `2026-01-01T00:00:0${second}.500Z`
    const prefix = randomUUID().slice(0, 35)
    const [a, b, c, d] = await Promise.all([
      row(`${prefix}1`, at(1), at(9)),
      row(`${prefix}2`, at(2)),
      row(`${prefix}3`, at(2)),
      row(`${prefix}4`, at(0), at(2)),
    ])
    expect(await ids(ada.client, { kind, order_by: 'updated_at' })).toEqual([a, d, c, b])
    expect(await ids(ada.client, { kind, order_by: 'updated_at', order_direction: 'asc' })).toEqual([
      b,
      c,
      d,
      a,
    ])
    expect(await ids(ada.client, { kind })).toEqual([c, b, a, d])
    expect(await ids(ada.client, { kind, order_direction: 'asc' })).toEqual([d, a, b, c])
  })
})

describe('the acting actor', () => {
  it('is the only one that counts: cells and grants of the account’s other actors do not', async () => {
    const both = await test.account()
    const second = await test.actor(both.id, 'second')
    const kind = ownKind()
    const [mine, shared] = [
      await cellRow(test, { kind, created_by: both.actor_id }),
      await cellRow(test, { kind }),
    ]
    await test.cellGrant(shared, 'viewer', { actor_id: both.actor_id })
    expect(await reasonOf(both.client.cell_list({ kind }))).toBe('actor_required')
    expect((await ids(both.client, { kind, acting: both.actor_id })).sort()).toEqual([mine, shared].sort())
    expect(await ids(both.client, { kind, acting: second })).toEqual([])
  })
})

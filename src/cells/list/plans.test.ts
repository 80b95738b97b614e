import { describe, expect, test as it } from 'vitest'
import { cellRow, cellRows, countedUsage } from '../../../test/helpers/cell-rows.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { type TestAccount, testService } from '../../testing/index.ts'

/**
 * 24 000 cells, nearly all hidden and newer than what the callers see. A plan that walks hidden cells, sorts what
 * an index has in order, or reads a whole table touches far more than a page.
 */
const hidden = 20_000
const granted = 3000
const own = 2000
const test = await serviceForFile()
const [holder, stranger, owner, keeper, root] = await Promise.all([
  test.account({ roles: ['reader'] }),
  test.account(),
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])
const { db } = test.service.app
await cellRows(test, own, {
  kind: sql`case when i % 400 = 1 then 'rare' when i % 2 = 0 then 'note' else 'task' end`,
  visibility: sql`case when i % 2 = 0 then 'public' else 'private' end`,
  created_by: sql`${owner.actor_id}::uuid`,
  path: sql`case when i % 100 < 2 then 'docs/' || i end`,
  created_at: sql`'2024-01-01'::timestamptz + i * interval '1 second'`,
})
for (let i = 0; i < 5; i++) await cellRow(test, { kind: 'note', created_by: keeper.actor_id })
const { id: crowd } = await test.account()
const others = await Promise.all(Array.from({ length: 20 }, (_, i) => test.actor(crowd, `other ${i}`)))
await cellRows(test, hidden, {
  created_by: sql`(${others}::uuid[])[1 + i % 20]`,
  kind: sql`case when i % 2 = 0 then 'note' else 'k' || i % 1000 end`,
  path: sql`case when i % 2 = 0 then 'docs/hidden/' || i end`,
  created_at: sql`'2025-01-01'::timestamptz + i * interval '1 second'`,
})
await db.run(sql`
  insert into cell_grant (cell_id, level, role, cell_created_at, cell_path)
  select id, 'viewer', 'reader', created_at, path from cell where created_at >= '2025-01-01' order by id limit ${granted}`)
// Grants of others, so that those of the holder are a small part of all.
await db.run(sql`
  insert into cell_grant (cell_id, level, role, cell_created_at, cell_path)
  select id, 'viewer', 'role ' || created_at::text, created_at, path from cell
  where id not in (select cell_id from cell_grant)`)
await db.run(sql`
  insert into role_grant (actor_id, role)
  select ${stranger.actor_id}::uuid, 'other ' || i from generate_series(1, 1000) i`)
await db.run(sql`update role_grant set revoked_at = now() where role like 'other %'`)
await countedUsage(test)
for (const table of ['cell', 'cell_grant', 'role_grant']) await db.run(sql`analyze ${sql.raw(table)}`)

type Input = NonNullable<Parameters<TestAccount['client']['cell_list']>[0]>
const orders = [
  { order_by: 'created_at', order_direction: 'desc' },
  { order_by: 'updated_at', order_direction: 'asc' },
] as const
const pathOrders = [{ order_direction: 'asc' }, { order_direction: 'desc' }] as const
/** The max work for the first and second page, in both orders. */
async function listWork(account: TestAccount, input: Input) {
  const all = []
  for (const order of input.path_prefix === undefined ? orders : pathOrders) {
    const list = { ...input, ...order, limit: 20 }
    let cursor: string | null = null
    all.push(
      await workOf(test.databaseUrl, async () => {
        cursor = (await account.client.cell_list(list)).next_cursor
      }),
    )
    if (cursor) all.push(await workOf(test.databaseUrl, () => account.client.cell_list({ ...list, cursor })))
  }
  return {
    scanned: all.flatMap(({ scanned }) => scanned).filter((table) => table !== 'role_grant'),
    cells: Math.max(...all.map(({ rows }) => rows.cell ?? 0)),
    grants: Math.max(...all.map(({ rows }) => rows.cell_grant ?? 0)),
  }
}

describe('cell_list touches about a page of cells, in both orders, on the first page and later', () => {
  const anonymous = () => ({ client: test.client() }) as TestAccount
  it.each<[string, () => TestAccount, Input]>([
    ['anonymous', anonymous, {}],
    ['anonymous, kind', anonymous, { kind: 'note' }],
    ['anonymous, kind of hidden cells only', anonymous, { kind: 'k7' }],
    ['anonymous, private', anonymous, { visibility: 'private' }],
    ['stranger', () => stranger, {}],
    ['stranger, private', () => stranger, { visibility: 'private' }],
    ['stranger, kind', () => stranger, { kind: 'note', visibility: 'private' }],
    ['stranger, shared', () => stranger, { shared_with: 'me' }],
    ['owner', () => owner, {}],
    ['owner, private', () => owner, { visibility: 'private' }],
    ['admin', () => root, {}],
    ['admin, kind', () => root, { kind: 'note' }],
    ['admin, private kind', () => root, { kind: 'k7', visibility: 'private' }],
    ['admin, shared', () => root, { shared_with: 'me' }],
  ])('%s', async (_what, account, input) => {
    const { scanned, cells, grants } = await listWork(account(), input)
    expect(scanned).toEqual([])
    expect(cells).toBeLessThan(150)
    expect(grants).toBeLessThan(150)
  })

  it('a holder of many grants: a page by creation or path, otherwise at most the grants', async () => {
    const path_prefix = 'docs/hidden/'
    const page = { cells: expect.toSatisfy((n) => n < 150), grants: expect.toSatisfy((n) => n < 200) }
    for (const input of [{}, { shared_with: 'me' }, { visibility: 'private' }] as Input[]) {
      expect(await listWork(holder, { ...input, path_prefix })).toMatchObject({ scanned: [], ...page })
      for (const order_direction of ['asc', 'desc'] as const) {
        const list = { ...input, order_direction, limit: 20 }
        const { rows, scanned } = await workOf(test.databaseUrl, () => holder.client.cell_list(list))
        expect(scanned.filter((table) => table !== 'role_grant')).toEqual([])
        expect(rows.cell).toBeLessThan(150)
        expect(rows.cell_grant).toBeLessThan(200)
      }
    }
    const rare = { kind: 'k7' }
    for (const input of [{}, rare, { path_prefix, ...rare }, { created_by: owner.actor_id }] as Input[]) {
      const { cells, grants, scanned } = await listWork(holder, input)
      expect(scanned).toEqual([])
      expect(cells).toBeLessThan(2 * granted + 1000)
      expect(grants).toBeLessThan(2 * granted + 1000)
    }
  })

  it('a holder of many roles: no grants of cells behind a page of public ones, and one for each cell of a page', async () => {
    const roles = Array.from({ length: 30 }, (_, i) => `late ${i}`)
    const many = await test.account({ roles })
    await db.run(sql`
      insert into cell_grant (cell_id, level, role, cell_created_at, cell_path)
      select id, 'viewer', 'late ' || n % 30, created_at, path from (
        select *, row_number() over (order by created_at, id) as n from cell where visibility = 'private'
      ) c where n <= 900`)
    const page = await workOf(test.databaseUrl, () => many.client.cell_list({ limit: 20 }))
    expect(page.rows.cell).toBeLessThan(150)
    expect(page.rows.cell_grant ?? 0).toBeLessThan(30)
    const { rows } = await workOf(test.databaseUrl, () =>
      many.client.cell_list({ limit: 20, visibility: 'private', order_direction: 'asc' }),
    )
    // All grants that are read of each role, and one for each cell of the page.
    expect(rows.cell_grant).toBeLessThan(900 + 2 * 21)
  })

  it('a path prefix: what lies under it and is visible, not what is hidden there', async () => {
    for (const account of [anonymous(), stranger, owner])
      for (const more of [{}, { created_by: owner.actor_id }]) {
        if (account.actor_id === undefined && more.created_by) continue
        const { cells, scanned } = await listWork(account, { path_prefix: 'docs/', ...more })
        expect(scanned).toEqual([])
        expect(cells).toBeLessThan(150)
      }
    const { cells } = await listWork(root, { path_prefix: 'docs/hidden/77' })
    expect(cells).toBeLessThan(500)
  })

  it('a creator, and a kind among own cells or those of a creator: about a page', async () => {
    const created_by = owner.actor_id
    for (const [account, input] of [
      [owner, { kind: 'note' }],
      [owner, { kind: 'rare' }],
      [owner, { kind: 'rare', created_by, visibility: 'private' }],
      [owner, { created_by }],
      [stranger, { created_by }],
      [root, { created_by, kind: 'note' }],
    ] as const) {
      const { cells, scanned } = await listWork(account, input)
      expect(scanned).toEqual([])
      expect(cells).toBeLessThan(150)
    }
  })

  it('an owner of few cells of a kind that is common among hidden ones: only these few', async () => {
    const { cells, scanned } = await listWork(keeper, { kind: 'note', visibility: 'private' })
    expect(scanned).toEqual([])
    expect(cells).toBeLessThan(50)
  })

  it('ids: only these', async () => {
    const { cells } = await stranger.client.cell_list({ limit: 100 })
    const ids = cells.map(({ id }) => id)
    const work = await workOf(test.databaseUrl, () => stranger.client.cell_list({ ids, kind: 'note' }))
    expect(work.scanned).not.toContain('cell')
    expect(work.rows.cell).toBeLessThan(400)
  })
})

describe('one cell', () => {
  it('is found by its path in the index on all paths', async () => {
    for (const path of ['docs/0', 'docs/hidden/2', 'nowhere']) {
      const work = await workOf(test.databaseUrl, () => root.client.try.cell_get({ path }))
      expect(work.indexes).toContain('cell_path')
      expect(work.rows.cell ?? 0).toBeLessThan(5)
      expect(work.scanned).not.toContain('cell')
    }
  })

  it('with ten thousand grants is read and locked like a cell with one', async () => {
    const [few, many] = [await cellRow(test, {}), await cellRow(test, {})]
    for (const id of [few, many]) await test.cellGrant(id, 'viewer', { role: 'reader', scope_id: null })
    await test.service.app.db.run(sql`
      insert into cell_grant (cell_id, level, role, cell_created_at)
      select ${many}::uuid, 'editor', 'some ' || i, now() from generate_series(1, 10000) i`)
    const calls: ((id: string) => Promise<unknown>)[] = [
      (id) => holder.client.cell_get({ id }),
      (id) => holder.client.cell_list({ ids: [id] }),
      (id) => holder.client.cell_list({ ids: [id], shared_with: 'me' }),
      (id) => holder.client.try.cell_update({ cell_id: id }),
      (id) => holder.client.try.cell_delete({ cell_id: id }),
    ]
    for (const call of calls) {
      const [one, ten_thousand] = [
        await workOf(test.databaseUrl, () => call(few)),
        await workOf(test.databaseUrl, () => call(many)),
      ]
      expect(one.pages).toBeGreaterThan(0)
      expect(ten_thousand.pages).toBeLessThanOrEqual(one.pages + 10)
    }
  })

  it('with edges to large cells reads none of their data', async () => {
    const [small, large] = [
      await cellRow(test, { visibility: 'public' }),
      await cellRow(test, { visibility: 'public' }),
    ]
    for (const [parent, size] of [
      [small, 1],
      [large, 4000],
    ] as const)
      await test.service.app.db.run(sql`
        with far as (
          insert into cell (visibility, data, data_bytes)
          select 'public', jsonb_build_object('a', (select string_agg(md5(i::text || j), '') from generate_series(1, ${size}::int) j)), 200000
          from generate_series(1, 60) i returning id
        ), numbered as (select id, row_number() over () as n from far), items as (
          insert into cell_item (parent_id, position, child_id) select ${parent}::uuid, n::text, id from numbered
        )
        insert into cell_field (source_id, name, target_id) select ${parent}::uuid, 'f' || n, id from numbered`)
    const pages = async (id: string) =>
      (await workOf(test.databaseUrl, () => test.client().cell_get({ id }))).pages
    const [few, many] = [await pages(small), await pages(large)]
    expect(few).toBeGreaterThan(100)
    // The data of a single far cell takes more than fifty pages.
    expect(many).toBeLessThan(few + 50)
  })
})

it('where one principal has all grants, the lists of others do not look through these', async () => {
  await using own = await testService()
  const [holder, other] = await Promise.all([own.account(), own.account()])
  await cellRows(own, granted, {
    created_by: sql`${holder.actor_id}::uuid`,
    path: sql`'docs/' || i`,
    created_at: sql`'2025-01-01'::timestamptz + i * interval '1 second'`,
  })
  await own.service.app.db.run(sql`
    insert into cell_grant (cell_id, level, role, cell_created_at, cell_path)
    select id, 'viewer', 'reader', created_at, path from cell`)
  for (const table of ['cell', 'cell_grant']) await own.service.app.db.run(sql`analyze ${sql.raw(table)}`)
  await cellRow(own, { created_by: other.actor_id, path: 'docs/own' })
  for (const input of [
    {},
    ...orders,
    { kind: 'note' },
    ...pathOrders.map((order) => ({ ...order, path_prefix: 'docs/' })),
  ]) {
    const { scanned, rows } = await workOf(own.databaseUrl, () => other.client.cell_list(input))
    expect([input, scanned.includes('cell_grant'), rows.cell_grant ?? 0]).toEqual([input, false, 0])
  }
})

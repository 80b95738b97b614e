import { describe, expect, test as it } from 'vitest'
import { cellRow, cellRows } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import type { TestAccount } from '../../testing/index.ts'

/**
 * Popular cells among 15 000 with few edges, so that the planner expects few. One has edges to and from hidden
 * cells, the other has edges that every caller sees. A plan that sorts or joins all edges of a cell for one page,
 * reads a whole table or checks a hidden cell twice touches far more rows than allowed.
 */
const many = 5_000

const test = await serviceForFile()
const bob = await test.account({ roles: ['one', 'two', 'three'] })
const dean = await test.account()
const { db } = test.service.app
/** All edges of `shy` but three, in both directions, are with hidden cells; those of `open` are with public ones. */
const [shy, open] = [
  await cellRow(test, { visibility: 'public' }),
  await cellRow(test, { visibility: 'public' }),
]
await cellRows(test, many, { kind: sql`'hidden'` })
await cellRows(test, many, { kind: sql`'open'`, visibility: sql`'public'` })
await cellRows(test, many, { kind: sql`'other'`, visibility: sql`'public'` })
await db.run(sql`
  update cell set created_by = ${bob.actor_id}::uuid
  where id in (select id from cell where kind = 'hidden' order by id limit 3)`)
await db.run(sql`
  insert into role_grant (actor_id, role) select ${dean.actor_id}::uuid, 'role ' || i from generate_series(1, 200) i`)
await db.run(sql`
  insert into cell_grant (cell_id, level, role, cell_created_at)
  select id, 'viewer', 'role 200', created_at from cell where created_by = ${bob.actor_id}::uuid`)
// Grants on other cells, so that those of one cell are a small share.
await db.run(sql`
  insert into cell_grant (cell_id, level, role, cell_created_at)
  select id, 'viewer', role, created_at from cell, unnest('{x,y}'::text[]) role where kind = 'hidden'`)
for (const [hub, kind] of [
  [shy, 'hidden'],
  [open, 'open'],
] as const) {
  await db.run(sql`
    insert into cell_field (source_id, name, target_id)
    select id, 'to', ${hub}::uuid from cell where kind = ${kind}
    union all select ${hub}::uuid, 'k' || row_number() over (order by id), id from cell where kind = ${kind}`)
  await db.run(sql`
    insert into cell_item (parent_id, position, child_id)
    select id, '1', ${hub}::uuid from cell where kind = ${kind}
    union all select ${hub}::uuid, 'k' || row_number() over (order by id), id from cell where kind = ${kind}`)
}
await db.run(sql`
  insert into cell_field (source_id, name, target_id)
  select id, 'to' || n, id from cell, generate_series(1, 2) n where kind = 'other'`)
await db.run(sql`
  insert into cell_item (parent_id, position, child_id)
  select id, 'to' || n, id from cell, generate_series(1, 2) n where kind = 'other'`)
for (const table of ['cell', 'cell_grant', 'cell_field', 'cell_item', 'role_grant'])
  await db.run(sql`analyze ${sql.raw(table)}`)

type Input = { limit: number; cursor?: string }
type Page = { fields?: unknown[]; items?: unknown[]; next_cursor: string | null }
type List = (caller: TestAccount, id: string, input: Input) => Promise<Page>
const lists: [string, List][] = [
  ['fields of a cell', ({ client }, source_id, input) => client.cell_field_list({ source_id, ...input })],
  ['fields to a cell', ({ client }, target_id, input) => client.cell_field_list({ target_id, ...input })],
  ['items of a cell', ({ client }, parent_id, input) => client.cell_item_list({ parent_id, ...input })],
  ['places of a cell', ({ client }, child_id, input) => client.cell_item_list({ child_id, ...input })],
]

describe.each(lists)('%s', (_what, list) => {
  it('among 5000 visible ones: only one page is read, whichever it is', async () => {
    let cursor: string | null = null
    for (let page = 0; page < 3; page++) {
      const input: Input = { limit: 20, ...(cursor !== null && { cursor }) }
      const work = await workOf(test.databaseUrl, async () => {
        cursor = (await list(bob, open, input)).next_cursor
      })
      expect(work.scanned.filter((table) => table !== 'role_grant')).toEqual([])
      expect((work.rows.cell_field ?? 0) + (work.rows.cell_item ?? 0)).toBeLessThan(50)
      expect(work.rows.cell).toBeLessThan(50)
      expect(work.pages).toBeLessThan(250)
    }
  })

  it.each([
    ['three roles', bob],
    ['two hundred roles', dean],
  ])(
    'among 5000 hidden ones, with %s: each is checked once, and few of its grants',
    async (_roles, caller) => {
      const work = await workOf(test.databaseUrl, async () => {
        const { fields, items, next_cursor } = await list(caller, shy, { limit: 100 })
        expect([(fields ?? items)?.length, next_cursor]).toEqual([3, null])
      })
      expect(work.scanned.filter((table) => table !== 'role_grant')).toEqual([])
      expect((work.rows.cell_field ?? 0) + (work.rows.cell_item ?? 0)).toBeLessThanOrEqual(many)
      expect(work.rows.cell).toBeLessThanOrEqual(many + 1)
      expect(work.rows.cell_grant ?? 0).toBeLessThanOrEqual(4 * many)
    },
  )
})

it('cells that a caller with two hundred roles names, clones or shares: few grants of each are read', async () => {
  const ids = (await db.rows<{ id: string }>(sql`select id from cell where kind = 'hidden' limit 200`)).map(
    ({ id }) => id,
  )
  const [list, shared, clone] = [
    await workOf(test.databaseUrl, () => dean.client.cell_list({ ids })),
    await workOf(test.databaseUrl, async () => {
      expect((await dean.client.cell_list({ shared_with: 'me' })).cells).toHaveLength(3)
    }),
    await workOf(test.databaseUrl, () => dean.client.cell_clone_preview({ source_id: shy })),
  ]
  expect(list.rows.cell_grant).toBeLessThanOrEqual(4 * ids.length)
  expect(shared.rows.cell_grant).toBeLessThanOrEqual(20 * 3)
  expect(clone.rows.cell_grant).toBeLessThanOrEqual(4 * 2 * many)
})

it('a hidden cell: none of two hundred roles of the caller is probed, so that it takes no longer than a missing one', async () => {
  const hidden = await cellRow(test, { path: 'secret' })
  await test.cellGrant(hidden, 'viewer', { role: 'x', scope_id: null })
  for (const input of [{ id: hidden }, { path: 'secret' }]) {
    const work = await workOf(test.databaseUrl, () => reasonOf(dean.client.cell_get(input)))
    expect(work.rows.cell_grant).toBeLessThanOrEqual(3)
  }
})

it('the bundle of a cell: 501 of its 5000 edges of each kind', async () => {
  const work = await workOf(test.databaseUrl, () => bob.client.cell_get({ id: open }))
  expect(work.scanned.filter((table) => table !== 'role_grant')).toEqual([])
  const { version } = await test.service.app.db.readOnly.one<{ version: number }>(
    sql`select current_setting('server_version_num')::integer as version`,
  )
  // PostgreSQL 15 reads one row more, to see whether there are more.
  const examined = version < 160_000 ? 502 : 501
  expect(work.rows.cell_field).toBeLessThanOrEqual(examined)
  expect(work.rows.cell_item).toBeLessThanOrEqual(examined)
  expect(work.rows.cell).toBeLessThanOrEqual(2 * 501 + 1)
})

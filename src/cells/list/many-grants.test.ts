import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, cellRows } from '../../../test/helpers/cell-rows.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { sql } from '../../db/db.ts'
import { type TestAccount, type TestService, testService } from '../../testing/index.ts'
import { readMax } from './branches.ts'
import { walkMax } from './walks.ts'

/**
 * Callers with so many granted cells that a list first walks in its own order and checks which cells are granted.
 * Those of `near` are half of all, and too many to be read before the walk; those of `far` are the oldest.
 */
const cellCount = 2 * readMax + 6000
const start = '2024-01-01'

let test: TestService
let holder: TestAccount
let farHolder: TestAccount
let creator: TestAccount
beforeAll(async () => {
  // On a busy machine the statements that read all cells take longer than calls may.
  test = await testService({ statement_timeout_ms: 30_000 })
  ;[holder, farHolder, creator] = await Promise.all([
    test.account({ roles: ['near'] }),
    test.account({ roles: ['far'] }),
    test.account(),
  ])
  await cellRows(test, cellCount, {
    kind: sql`case when i % 5000 < 2 then 'rare' when i % 4 < 2 then 'even' end`,
    visibility: sql`case when i % 1000 < 2 or i % 400 = 1 then 'public' else 'private' end`,
    created_by: sql`case when i % 9000 < 2 then ${creator.actor_id}::uuid end`,
    path: sql`case when i % 3000 < 2 then 'docs/' || i end`,
    created_at: sql`${start}::timestamptz + i * interval '1 second'`,
    updated_at: sql`case when i % 8 < 2 then ${start}::timestamptz + (i + 2000) * interval '1 second' end`,
  })
  const grants = (role: string, condition: ReturnType<typeof sql>) =>
    test.service.app.db.run(sql`
      insert into cell_grant (cell_id, level, role, cell_created_at, cell_path)
      select id, 'viewer', ${role}, created_at, path from (
        select *, extract(epoch from created_at - ${start}::timestamptz)::int as i from cell
      ) c where ${condition}`)
  await grants('near', sql`i % 2 = 0`)
  await grants('far', sql`i <= ${walkMax + 1000}`)
  for (const table of ['cell', 'cell_grant']) await test.service.app.db.run(sql`analyze ${sql.raw(table)}`)
})
afterAll(() => test.close())

type Input = NonNullable<Parameters<TestAccount['client']['cell_list']>[0]>
type Row = {
  id: string
  kind: string | null
  visibility: string
  created_by: string | null
  path: string | null
  near: boolean
  far: boolean
}
const read = new Map<string, Promise<Row[]>>()
/** All cells in one order, read once, because each expectation would otherwise scan the table. */
function inOrder(key: string): Promise<Row[]> {
  const cells =
    read.get(key) ??
    test.service.app.db.rows<Row>(sql`
      select id, kind, visibility, created_by, path,
        exists (select from cell_grant where cell_id = cell.id and role = 'near') as near,
        exists (select from cell_grant where cell_id = cell.id and role = 'far') as far
      from cell order by ${sql.raw(key)}, id`)
  read.set(key, cells)
  return cells
}

/** The expected ids of the first pages, from the cells in ascending order. */
function expected(role: 'near' | 'far', input: Input, cells: readonly Row[], count: number): string[] {
  const is = (wanted: string | null | undefined, value: string | null) =>
    (wanted ?? null) === null || wanted === value
  const fits = (cell: Row): boolean =>
    (cell[role] || (!input.shared_with && cell.visibility === 'public')) &&
    is(input.kind, cell.kind) &&
    is(input.visibility, cell.visibility) &&
    is(input.created_by, cell.created_by) &&
    (!input.path_prefix || cell.path?.startsWith('docs/') === true)
  const ids: string[] = []
  for (let at = 0; at < cells.length && ids.length < count; at++) {
    const cell = cells.at(input.order_direction === 'asc' ? at : -1 - at) as Row
    if (fits(cell)) ids.push(cell.id)
  }
  return ids
}

const inputs: Input[] = [
  {},
  { visibility: 'private' },
  { kind: 'even' },
  { kind: 'rare' },
  { kind: 'none' },
  { shared_with: 'me' },
  { shared_with: 'me', visibility: 'public' },
  { visibility: 'private', kind: 'rare' },
]
const prefixed: Input[] = [
  { path_prefix: 'docs/' },
  { path_prefix: 'docs/', kind: 'rare' },
  { path_prefix: 'docs/', shared_with: 'me' },
  { path_prefix: 'docs/', visibility: 'private' },
]
const directions = ['asc', 'desc'] as const
const orders = (['created_at', 'updated_at'] as const).flatMap((order_by) =>
  directions.map((order_direction) => ({ order_by, order_direction })),
)

describe.each(['near', 'far'] as const)('where granted cells are %s in the order of the list', (role) => {
  it('the first pages are correct and in order, whatever the filter', async () => {
    const { client } = role === 'near' ? holder : farHolder
    const { actor_id: created_by } = creator
    const [byCreation = [], byChange = [], byPath = []] = await Promise.all(
      ['created_at', 'coalesce(updated_at, created_at)', 'path'].map(inOrder),
    )
    const ofCreator = prefixed.map((input) => ({ ...input, created_by }))
    const lists = [
      ...[...inputs, { created_by }, { created_by, kind: 'rare' }].flatMap((input) =>
        orders.map((order) => ({ ...input, ...order })),
      ),
      ...[...prefixed, ...ofCreator].flatMap((input) =>
        directions.map((order_direction) => ({ ...input, order_direction })),
      ),
    ]
    for (const one of lists) {
      const list = { ...one, limit: 5 }
      const ids: string[] = []
      let cursor: string | null = null
      for (let page = 0; page < 3; page++) {
        const { cells, next_cursor } = await client.cell_list({ ...list, cursor })
        ids.push(...cells.map(({ id }) => id))
        cursor = next_cursor
        if (cursor === null) break
      }
      const cells = list.path_prefix ? byPath : list.order_by === 'updated_at' ? byChange : byCreation
      expect(ids, JSON.stringify(list)).toEqual(expected(role, list, cells, 15))
    }
  })
})

it('a page by last change, or of a kind, examines far fewer cells than are granted', async () => {
  for (const input of [
    { order_by: 'updated_at' },
    { kind: 'rare' },
    { shared_with: 'me', order_by: 'updated_at' },
    { path_prefix: 'docs/' },
    { path_prefix: 'docs/', shared_with: 'me' },
  ] as Input[]) {
    const { rows, scanned } = await workOf(test.databaseUrl, () =>
      holder.client.cell_list({ ...input, limit: 20 }),
    )
    expect(scanned).not.toContain('cell')
    expect(rows.cell, JSON.stringify(input)).toBeLessThan(500)
    expect(rows.cell_grant, JSON.stringify(input)).toBeLessThan(readMax + 1000)
  }
})

it('a page that public cells fill examines no cells beyond its end, though all granted ones are there', async () => {
  for (const input of [{}, { kind: 'even' }] as Input[]) {
    const { rows, scanned } = await workOf(test.databaseUrl, () =>
      farHolder.client.cell_list({ ...input, order_by: 'updated_at', limit: 2 }),
    )
    expect(scanned).not.toContain('cell')
    expect(rows.cell, JSON.stringify(input)).toBeLessThan(2 * walkMax)
  }
})

it('a granted cell shows from the grant until its end', async () => {
  const id = await cellRow(test, { created_at: '2099-01-01T00:00:00Z' })
  const first = async () => (await holder.client.cell_list({ order_by: 'updated_at', limit: 1 })).cells[0]?.id
  expect(await first()).not.toBe(id)
  await test.cellGrant(id, 'viewer', { actor_id: holder.actor_id })
  expect(await first()).toBe(id)
  await test.service.app.db.run(sql`delete from cell_grant where cell_id = ${id}`)
  expect(await first()).not.toBe(id)
})

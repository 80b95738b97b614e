import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, cellRows } from '../../../test/helpers/cell-rows.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { sql } from '../../db/db.ts'
import { type TestAccount, type TestService, testService } from '../../testing/index.ts'
import { walkMax } from './page.ts'

/**
 * Callers with so many granted cells that a list first walks in its own order and checks which cells are granted.
 * Half of the cells are hidden from both holders; those granted to `far` are all older than the hidden ones.
 */
const granted = walkMax.created_at + 1000
const start = '2024-01-01'

let test: TestService
let holder: TestAccount
let farHolder: TestAccount
let creator: TestAccount
beforeAll(async () => {
  test = await testService()
  ;[holder, farHolder, creator] = await Promise.all([
    test.account({ roles: ['near'] }),
    test.account({ roles: ['far'] }),
    test.account(),
  ])
  await cellRows(test, 2 * granted + 4000, {
    kind: sql`case when i % 5000 < 2 then 'rare' when i % 4 < 2 then 'even' end`,
    visibility: sql`case when i % 1000 < 2 then 'public' else 'private' end`,
    created_by: sql`case when i % 9000 < 2 then ${creator.actor_id}::uuid end`,
    path: sql`case when i % 3000 < 2 then 'docs/' || i end`,
    created_at: sql`${start}::timestamptz + i * interval '1 second'`,
    updated_at: sql`case when i % 8 < 2 then ${start}::timestamptz + (i + 2000) * interval '1 second' end`,
  })
  const grants = (role: string, condition: ReturnType<typeof sql>) =>
    test.service.app.db.run(sql`
      insert into cell_grant (cell_id, level, role, cell_created_at)
      select id, 'viewer', ${role}, created_at from (
        select *, extract(epoch from created_at - ${start}::timestamptz)::int as i from cell
      ) c where ${condition}`)
  await grants('near', sql`i % 2 = 0`)
  await grants('far', sql`i <= ${granted}`)
  for (const table of ['cell', 'cell_grant']) await test.service.app.db.run(sql`analyze ${sql.raw(table)}`)
})
afterAll(() => test.close())

type Input = NonNullable<Parameters<TestAccount['client']['cell_list']>[0]>
/** The expected ids of the first pages. */
async function expected(role: string, input: Input, count: number): Promise<string[]> {
  const key = sql.raw(
    input.path_prefix
      ? 'path'
      : input.order_by === 'updated_at'
        ? 'coalesce(updated_at, created_at)'
        : 'created_at',
  )
  const direction = sql.raw(input.order_direction ?? 'desc')
  const rows = await test.service.app.db.rows<{ id: string }>(sql`
    select id from cell
    where (${!input.shared_with} and visibility = 'public'
        or id in (select cell_id from cell_grant where role = ${role}))
      and kind is not distinct from coalesce(${input.kind ?? null}, kind)
      and visibility = coalesce(${input.visibility ?? null}, visibility)
      and created_by is not distinct from coalesce(${input.created_by ?? null}::uuid, created_by)
      and (${input.path_prefix ?? null}::text is null or path like 'docs/%')
    order by ${key} ${direction}, id ${direction} limit ${count}`)
  return rows.map(({ id }) => id)
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

describe.each(['near', 'far'])('where granted cells are %s in the order of the list', (role) => {
  it('the first pages are correct and in order, whatever the filter', async () => {
    const { client } = role === 'near' ? holder : farHolder
    const { actor_id: created_by } = creator
    const ofCreator = prefixed.map((input) => ({ ...input, created_by }))
    const lists = [
      ...inputs.flatMap((input) => orders.map((order) => ({ ...input, ...order }))),
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
      expect(ids, JSON.stringify(list)).toEqual(await expected(role, list, 15))
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

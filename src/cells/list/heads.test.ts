import { expect, test as it } from 'vitest'
import { cellRows } from '../../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import type { TestAccount } from '../../testing/index.ts'
import { lastHead, withoutLast } from '../cells.ts'
import type { ListInput, Way } from './branches.ts'
import type { After as ListAfter } from './order.ts'
import { type ListPage, listStatement } from './page.ts'

/**
 * A caller with cells through several principals, often the same cells. Between the newest and the oldest there are
 * many granted cells that no list shows, so that the first grants of a principal may not fill a page. At both ends
 * every second cell is public, so that some pages are full without any grant.
 */
const sent: string[] = []
const test = await serviceForFile({ onStatement: (text) => sent.push(text) })
const { db } = test.service.app
const roles = ['red', 'blue', 'green']
const ada = await test.account({ roles })
/** Has so many roles that each cell is checked by the grant that led to it. */
const eve = await test.account({ roles: [...roles, ...Array.from({ length: 10 }, (_, i) => `none ${i}`)] })
const start = '2024-01-01'
const count = 900
const isDeleted = sql`i between 200 and 800 and i % 100 > 2`
await cellRows(test, count, {
  visibility: sql`case when i % 50 = 0 or (i < 120 or i > 840) and i % 2 = 0 then 'public' else 'private' end`,
  kind: sql`case when i % 37 = 0 then 'rare' when i % 3 = 0 then 'often' end`,
  created_by: sql`case when i % 70 = 0 then ${ada.actor_id}::uuid end`,
  // Ten cells at a time share a timestamp, and so do the newest.
  created_at: sql`${start}::timestamptz + (least(i, 840) / 10) * interval '1 second'`,
  // In another order than by time; deleted cells repeat the paths of others.
  path: sql`case when i % 4 > 0 then 'p/' || md5((case when ${isDeleted} then 841 + i % 59 else i end)::text) end`,
  deleted_at: sql`case when ${isDeleted} then ${start}::timestamptz + interval '1 day' end`,
})
const grant = (principal: { role: string } | { actor_id: string }, condition: ReturnType<typeof sql>) =>
  db.run(sql`
    insert into cell_grant (cell_id, level, role, actor_id, cell_created_at, cell_path)
    select id, 'viewer', ${'role' in principal ? principal.role : null},
      ${'actor_id' in principal ? principal.actor_id : null}::uuid, created_at, path
    from (select *, row_number() over (order by created_at, id) as i from cell) c where ${condition}`)
await grant({ role: 'red' }, sql`i % 3 <> 0`)
await grant({ role: 'blue' }, sql`i % 2 = 0`)
await grant({ role: 'green' }, sql`i between 300 and 310`)
await grant({ actor_id: ada.actor_id }, sql`i % 5 = 0`)

type Input = NonNullable<Parameters<TestAccount['client']['cell_list']>[0]>

const expected = async (
  { actor_id }: TestAccount,
  { kind, visibility, shared_with, path_prefix, order_direction = 'desc' }: Input,
): Promise<string[]> => {
  const isMine = sql`created_by is not distinct from ${actor_id}::uuid`
  const isGranted = sql`exists (
    select from cell_grant g where g.cell_id = cell.id
      and (g.role in ('red', 'blue', 'green') or g.actor_id = ${actor_id}::uuid))`
  const rows = await db.rows<{ id: string }>(sql`
    select id from cell
    where deleted_at is null and starts_with(coalesce(path, ''), ${path_prefix ?? ''}) and kind is not distinct from coalesce(${kind ?? null}, kind)
      and visibility = coalesce(${visibility ?? null}, visibility)
      and ${shared_with ? sql`not (${isMine}) and ${isGranted}` : sql`(visibility = 'public' or ${isMine} or ${isGranted})`}
    order by ${sql.raw(path_prefix ? 'path' : 'created_at')} ${sql.raw(order_direction)}, id ${sql.raw(order_direction)}`)
  return rows.map(({ id }) => id)
}

async function pages({ client }: TestAccount, input: Input): Promise<string[]> {
  const ids: string[] = []
  for (let cursor: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof client.cell_list>> = await client.cell_list({
      ...input,
      cursor,
    })
    ids.push(...page.cells.map(({ id }) => id))
    cursor = page.next_cursor
    if (cursor === null) return ids
    expect(page.cells).toHaveLength(input.limit as number)
  }
}

const some = [
  {},
  { visibility: 'private' },
  { shared_with: 'me' },
  { kind: 'often' },
  { kind: 'rare' },
] as const
const inputs = (some as readonly Input[]).flatMap((input) =>
  [input, { ...input, path_prefix: 'p/' }].flatMap((list) =>
    (['asc', 'desc'] as const).flatMap((order_direction) =>
      [5, 20, 60].map((limit) => ({ ...list, order_direction, limit })),
    ),
  ),
)

it.each(inputs)('all pages of %j are whole and in order', async (input) => {
  for (const account of [ada, eve])
    expect(await pages(account, input)).toEqual(await expected(account, input))
})

const statements = async ({ client }: TestAccount, limit: number) => {
  sent.length = 0
  const { cells } = await client.cell_list({ limit })
  expect(cells).toHaveLength(limit)
  return sent
    .filter((text) => text.includes('has_more'))
    .map((text) => (text.includes('frontier') ? 'heads' : text.includes('distinct on') ? 'all' : 'ungranted'))
}

it('a page is read once if the first grants of each principal fill it, and else twice', async () => {
  await ada.client.cell_list({ limit: 20 })
  expect(await statements(ada, 20)).toEqual(['heads'])
  // Before the deleted cells, the caller sees fewer than this limit.
  expect(await statements(ada, 100)).toEqual(['heads', 'all'])
})

it('a page is read once from the first call on, and without grants if a page before had none', async () => {
  const member = await test.account({ roles: ['red'] })
  for (let call = 0; call < 2; call++) expect(await statements(member, 20)).toEqual(['heads'])
  const stranger = await test.account({ roles: ['none'] })
  expect(await statements(stranger, 20)).toEqual(['heads'])
  expect(await statements(stranger, 20)).toEqual(['ungranted'])
  await grant({ actor_id: stranger.actor_id }, sql`i = ${count}`)
  expect(await statements(stranger, 20)).toEqual(['ungranted', 'heads'])
  expect(await statements(stranger, 20)).toEqual(['heads'])
})

type Order = Pick<ListInput, 'order_by' | 'order_direction' | 'path_prefix'>
const page = (way: Way, order: Order, after: ListAfter, { actor_id }: TestAccount) =>
  db.one<ListPage>(
    listStatement({ ...order, limit: 5, actor_id }, after, { isAdmin: false, hasManyRoles: false }, way),
  )

it.each<Order>([
  { order_by: 'created_at', order_direction: 'asc' },
  { order_by: 'created_at', order_direction: 'desc' },
  { order_by: 'path', order_direction: 'asc', path_prefix: 'p/' },
  { order_by: 'path', order_direction: 'desc', path_prefix: 'p/' },
])('a page without grants, $order_by $order_direction, lacks no cell, or says that it may', async (order) => {
  const [grantless, rare] = [await test.account(), await test.account()]
  await grant({ actor_id: rare.actor_id }, sql`i in (15, 101, 199, 801, 871)`)
  for (const account of [rare, grantless]) {
    const outcomes = new Set<boolean | undefined>()
    for (let after: ListAfter = null; ; ) {
      const whole = await page('all', order, after, account)
      const { is_granted, ...found } = await page('ungranted', order, after, account)
      outcomes.add(is_granted)
      if (!is_granted) expect(found).toEqual(whole)
      if (!whole.has_more) break
      const { created_at, id, path } = lastHead(withoutLast(whole.cells as string))
      after = order.order_by === 'path' ? [path] : [created_at, id]
    }
    expect([...outcomes].sort()).toEqual(account === rare ? [false, true] : [false])
  }
})

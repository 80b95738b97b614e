import { beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, cellRows, endRole } from '../../../test/helpers/cell-rows.ts'
import { rpc } from '../../../test/helpers/http.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { type Sql, sql } from '../../db/db.ts'
import type { TestAccount, TestService } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob] = await Promise.all([test.account(), test.account()])

type Input = NonNullable<Parameters<TestAccount['client']['cell_list']>[0]>
type Page = { cells: { id: string }[]; next_cursor: string | null }
const list = async ({ service }: TestService, input: Input, cookie?: string): Promise<Page> =>
  (await service.call('cell_list', input, cookie === undefined ? {} : { headers: { cookie } })) as Page
const idsOf = ({ cells }: Page): string[] => cells.map(({ id }) => id)

/** Every page of a list; all but the last must be full. */
async function pages(input: Input, cookie?: string, on: TestService = test): Promise<string[][]> {
  const all: string[][] = []
  let cursor: string | null = null
  do {
    const page: Page = await list(on, { ...input, cursor }, cookie)
    all.push(idsOf(page))
    cursor = page.next_cursor
    if (cursor && input.limit) expect(page.cells).toHaveLength(input.limit)
  } while (cursor)
  return all
}
const stored = async (condition: Sql, order: Sql): Promise<string[]> =>
  (
    await test.service.app.db.rows<{ id: string }>(
      sql`select id from cell where ${condition} order by ${order}`,
    )
  ).map(({ id }) => id)

describe('3000 cells of one timestamp', () => {
  const kind = 'one moment'
  const ways = (['created_at', 'updated_at'] as const).flatMap((by) => [
    [by, 'desc'] as const,
    [by, 'asc'] as const,
  ])
  beforeAll(() =>
    cellRows(test, 3000, {
      kind: sql`case when i % 8 = 0 then ${kind}::text || ' too' else ${kind}::text end`,
      visibility: sql`'public'`,
      created_at: sql`'2026-01-01'::timestamptz`,
    }),
  )
  it.each(ways)('by %s %s each comes once, in order', async (order_by, order_direction) => {
    const order = { order_by, order_direction }
    const direction = sql.raw(order_direction)
    const walked = (await pages({ kind, ...order, limit: 197 }, ada.cookie)).flat()
    expect(walked).toEqual(await stored(sql`kind = ${kind}`, sql`id ${direction}`))
    const few = (await pages({ kind: `${kind} too`, ...order, limit: 7 }, ada.cookie)).flat()
    expect(few).toEqual(await stored(sql`kind = ${kind} || ' too'`, sql`id ${direction}`))
  })
})

describe('hidden cells', () => {
  it('500 between two visible ones do not shorten pages or shift cursors', async () => {
    const kind = 'sparse'
    await cellRows(test, 20 * 501, {
      kind: sql`${kind}::text`,
      visibility: sql`case when i % 501 = 0 then 'public' else 'private' end`,
      created_by: sql`${ada.actor_id}::uuid`,
      created_at: sql`'2026-01-01'::timestamptz + i / 3 * interval '1 second'`,
    })
    const visible = await stored(sql`kind = ${kind} and visibility = 'public'`, sql`created_at desc, id desc`)
    for (const cookie of [undefined, bob.cookie])
      for (const order_by of ['created_at', 'updated_at'] as const) {
        const walked = await pages({ kind, limit: 3, order_by }, cookie)
        expect(walked.flat()).toEqual(visible)
        expect(walked.map((page) => page.length)).toEqual([3, 3, 3, 3, 3, 3, 2])
      }
  })
})

describe('sources merged into one page', () => {
  it('public, own and granted cells, some visible in several ways, each come once and in order', async () => {
    const kind = 'merged'
    const me = await test.account()
    await test.roleGrant({ actor_id: me.actor_id, role: 'reader' })
    await cellRows(test, 300, {
      kind: sql`${kind}::text`,
      visibility: sql`case when i % 5 = 0 then 'public' else 'private' end`,
      created_by: sql`case when i % 3 = 0 then ${me.actor_id}::uuid end`,
      created_at: sql`'2026-01-01'::timestamptz + i / 4 * interval '1 second'`,
      updated_at: sql`case when i % 7 = 0 then '2026-01-01'::timestamptz + (400 - i) * interval '1 second' end`,
    })
    await test.service.app.db.run(sql`
      insert into cell_grant (cell_id, level, actor_id, role, cell_created_at)
      select c.id, 'viewer', who.actor_id, who.role, c.created_at
      from (select *, row_number() over (order by created_at, id) as n from cell where kind = ${kind}) c
      join (values (${me.actor_id}::uuid, null, 2), (null, 'reader', 3), (${bob.actor_id}::uuid, null, 4)) who (actor_id, role, every)
        on c.n % who.every = 0`)
    const mine = sql`kind = ${kind} and (visibility = 'public' or created_by = ${me.actor_id}::uuid or exists (
      select from cell_grant g where g.cell_id = cell.id and (g.actor_id = ${me.actor_id}::uuid or role = 'reader')))`
    for (const order_by of ['created_at', 'updated_at'] as const)
      for (const order_direction of ['asc', 'desc'] as const)
        for (const limit of [7, 20, 21, 200]) {
          const way = sql.raw(order_direction)
          const key = order_by === 'created_at' ? sql`created_at` : sql`coalesce(updated_at, created_at)`
          const walked = await pages({ kind, order_by, order_direction, limit }, me.cookie)
          expect(walked.flat()).toEqual(await stored(mine, sql`${key} ${way}, id ${way}`))
        }
  })
})

describe('the end', () => {
  it('an exactly full last page has no cursor', async () => {
    const kind = 'exact'
    await cellRows(test, 40, { kind: sql`${kind}::text`, visibility: sql`'public'` })
    for (const limit of [20, 40, 10])
      expect((await pages({ kind, limit })).map((page) => page.length)).toEqual(Array(40 / limit).fill(limit))
    expect((await pages({ kind, limit: 39 })).map((page) => page.length)).toEqual([39, 1])
    expect(await list(test, { kind: 'nothing' })).toEqual({ cells: [], next_cursor: null })
  })
})

describe('between two pages', () => {
  const fresh = async (kind: string, count = 6) => {
    await cellRows(test, count, {
      kind: sql`${kind}::text`,
      visibility: sql`'public'`,
      created_by: sql`${ada.actor_id}::uuid`,
      created_at: sql`'2026-01-01'::timestamptz + i * interval '1 second'`,
    })
    return await stored(sql`kind = ${kind}`, sql`created_at desc`)
  }

  it.each(['deleted', 'removed', 'made private'])(
    'the last cell of the page is %s: it goes on behind it',
    async (how) => {
      const kind = `last ${how}`
      const all = await fresh(kind)
      const first = await list(test, { kind, limit: 3 })
      const last = all[2] as string
      if (how === 'deleted') await ada.client.cell_delete({ cell_id: last })
      else if (how === 'removed') await test.service.app.db.run(sql`delete from cell where id = ${last}`)
      else await ada.client.cell_update({ cell_id: last, visibility: 'private' })
      expect(idsOf(await list(test, { kind, cursor: first.next_cursor }))).toEqual(all.slice(3))
    },
  )

  it('a new cell does not show up again before the cursor, an updated one moves to its new place', async () => {
    const kind = 'moved'
    const all = await fresh(kind)
    const first = await list(test, { kind, limit: 3, order_by: 'updated_at' })
    await cellRow(test, { kind, visibility: 'public' })
    await ada.client.cell_update({ cell_id: all[5] as string, data: { a: 1 } })
    const rest = await list(test, { kind, order_by: 'updated_at', cursor: first.next_cursor })
    expect(idsOf(rest)).toEqual([all[3], all[4]])
  })

  it('a role is revoked: the next page no longer admits', async () => {
    const kind = 'revoked'
    const [holder, root] = [
      await test.account({ roles: ['guest'] }),
      await test.account({ roles: ['admin'] }),
    ]
    const all = await fresh(kind)
    await test.service.app.db.run(sql`update cell set visibility = 'private' where kind = ${kind}`)
    for (const id of all) await test.cellGrant(id, 'viewer', { role: 'guest', scope_id: null })
    for (const [{ cookie, actor_id }, role] of [
      [holder, 'guest'],
      [root, 'admin'],
    ] as const) {
      const first = await list(test, { kind, limit: 3 }, cookie)
      expect(idsOf(first)).toEqual(all.slice(0, 3))
      await endRole(test, actor_id, role)
      expect(await list(test, { kind, cursor: first.next_cursor }, cookie)).toEqual({
        cells: [],
        next_cursor: null,
      })
    }
  })
})

describe('the byte budget', () => {
  it('ends a page before the cell that would take its data over 8 MiB', async () => {
    const kind = 'large'
    const data = JSON.stringify({ a: 'x'.repeat(262_144 - '{"a":""}'.length) })
    await test.service.app.db.run(sql`
      insert into cell (kind, visibility, data, data_bytes, created_by, created_at)
      select ${kind}, 'public', ${data}::jsonb, 262144, ${ada.actor_id}::uuid, '2026-01-01'::timestamptz + i * interval '1 second'
      from generate_series(1, 70) i`)
    const all = await stored(sql`kind = ${kind}`, sql`created_at desc`)
    // The row limit doesn't apply here: 32 × 256 KiB is exactly 8 MiB.
    const walked: string[][] = []
    let cursor: string | null = null
    do {
      const page: Page = await list(test, { kind, limit: 200, cursor })
      walked.push(idsOf(page))
      cursor = page.next_cursor
    } while (cursor)
    expect(walked.map((page) => page.length)).toEqual([32, 32, 6])
    expect(walked.flat()).toEqual(all)

    await test.service.app.db.run(sql`update cell set data_bytes = 262143 where id = ${all[0]}`)
    expect(await list(test, { kind, limit: 200 })).toMatchObject({ cells: { length: 32 } })
    await test.service.app.db.run(sql`delete from cell where id = ${all[0]}`)
    await cellRow(test, { kind, visibility: 'public', created_at: '2099-01-01T00:00:00Z' })
    const { text } = await rpc(test.url, {
      jsonrpc: '2.0',
      id: 1,
      method: 'cell_list',
      params: { kind, limit: 200 },
    })
    expect(JSON.parse(text).result.cells).toHaveLength(32)
    expect(text.length).toBeLessThan(8_388_608 + 33 * 1000)
  })

  it('is for the whole page: one cell may take far more of it than the others', async () => {
    const kind = 'one is large'
    const id = await cellRow(test, { kind, visibility: 'public' })
    const data = { a: 'x'.repeat(250_000) }
    await test.service.app.db.run(sql`
      update cell set data = ${JSON.stringify(data)}::jsonb, data_bytes = 250008 where id = ${id}`)
    for (let i = 0; i < 3; i++) await cellRow(test, { kind, visibility: 'public' })
    const page = await list(test, { kind, limit: 200 })
    expect(page.cells).toHaveLength(4)
    expect(page.cells.find((cell) => cell.id === id)).toMatchObject({ data })
    const walked = await pages({ kind, limit: 2, order_direction: 'asc' })
    expect(walked).toEqual([idsOf(page).slice(2).reverse(), idsOf(page).slice(0, 2).reverse()])
  })

  it.each([6, 7, 8])(
    'pages of at most %i large shared cells have the grants of just these',
    async (limit) => {
      const [owner, reader] = await Promise.all([test.account(), test.account()])
      const shared = new Map<string, unknown>()
      for (let i = 0; i < 8; i++) {
        const { cell } = await owner.client.cell_create({ data: { text: 'x'.repeat(250_000), i } })
        shared.set(cell.id, [await test.cellGrant(cell.id, 'viewer', { actor_id: reader.actor_id })])
      }
      const seen: string[] = []
      let cursor: string | null = null
      do {
        const page = await reader.client.cell_list({ shared_with: 'me', limit, cursor })
        expect(page.cell_grants).toEqual(Object.fromEntries(idsOf(page).map((id) => [id, shared.get(id)])))
        seen.push(...idsOf(page))
        cursor = page.next_cursor
      } while (cursor)
      expect(seen).toEqual([...shared.keys()].reverse())
    },
  )
})

it('cells whose texts hold what looks like the border of two cells are paged like others', async () => {
  const kind = '},{"id":"'
  const border = '},{"id":"x","data":'
  const admin = await test.account({ roles: ['admin'] })
  for (let i = 0; i < 5; i++)
    await admin.client.cell_create({
      kind,
      visibility: 'public',
      path: `borders/${i}${border}`,
      data: { label: border, [border]: [{}, { id: border, data: { id: 'x' } }, {}] },
    })
  const inOrder = await stored(sql`kind = ${kind}`, sql`path`)
  for (const limit of [1, 2, 4])
    expect((await pages({ path_prefix: 'borders/', limit }, admin.cookie)).flat()).toEqual(inOrder)
  expect((await pages({ kind, limit: 2 }, admin.cookie)).flat().sort()).toEqual([...inOrder].sort())
})

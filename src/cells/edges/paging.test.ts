import { describe, expect, test as it } from 'vitest'
import { emptyDatabaseWith } from '../../../test/fresh-database.ts'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { migrate } from '../../db/migration/migrate.ts'
import { toUrl } from '../../testing/cluster.ts'
import { type TestAccount, testService } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob] = await Promise.all([test.account(), test.account()])

type Input = { limit?: number | null; cursor?: string | null }
type Page = { keys: string[]; next_cursor: string | null }
type List = (id: string, input: Input, account?: TestAccount) => Promise<Page>
const listOf =
  (method: 'cell_field_list' | 'cell_item_list', end: string): List =>
  async (id, input, { client } = bob) => {
    const list = client[method] as (input: object) => Promise<{ next_cursor: string | null }>
    const { next_cursor, ...page } = await list({ [end]: id, ...input })
    const rows = Object.values(page as Record<string, Record<string, string>[]>).flat()
    const keys = rows.map((row) => `${row.source_id ?? row.parent_id} ${row.name ?? row.position}`)
    return { keys, next_cursor }
  }
/** The four lists of edges, each as a function of its cell. */
const lists: [string, List][] = [
  ['fields of a cell', listOf('cell_field_list', 'source_id')],
  ['items of a cell', listOf('cell_item_list', 'parent_id')],
  ['fields to a cell', listOf('cell_field_list', 'target_id')],
  ['places of a cell', listOf('cell_item_list', 'child_id')],
]

/** The sizes of all pages and the rows in them. */
async function walk(
  list: List,
  id: string,
  limit: number,
  account = bob,
): Promise<{ sizes: number[]; keys: string[] }> {
  const [sizes, keys]: [number[], string[]] = [[], []]
  let cursor: string | null = null
  do {
    const page: Page = await list(id, { limit, cursor }, account)
    sizes.push(page.keys.length)
    keys.push(...page.keys)
    cursor = page.next_cursor
  } while (cursor)
  return { sizes, keys }
}

/** A public cell with `count` edges of one timestamp to and from others, of which every `nth` is visible. */
async function hub(count: number, nth = 1): Promise<string> {
  const id = await cellRow(test, { visibility: 'public' })
  await test.service.app.db.run(sql`
    with far as (
      insert into cell (data, data_bytes, visibility)
      select '{}', 2, case when i % ${nth}::int = 0 then 'public' else 'private' end
      from generate_series(1, ${count}::int) i returning id, visibility
    ), numbered as (
      select id, row_number() over (order by md5(id::text)) + 1000 as n from far
    ), at as (select '2026-01-01'::timestamptz as moment), f as (
      insert into cell_field (source_id, name, target_id, created_at)
      select ${id}::uuid, 'k' || n, id, moment from numbered, at union all select id, 'to', ${id}::uuid, moment from numbered, at
    )
    insert into cell_item (parent_id, position, child_id, created_at)
    select ${id}::uuid, 'k' || n, id, moment from numbered, at union all select id, 'to', ${id}::uuid, moment from numbered, at`)
  return id
}

describe.each(lists)('%s', (_what, list) => {
  it('500 of one timestamp each come once and in order, whatever the page size', async () => {
    const id = await hub(500)
    const whole = await list(id, { limit: 500 })
    expect([new Set(whole.keys).size, whole.next_cursor]).toEqual([500, null])
    expect(whole.keys).toEqual([...whole.keys].sort())
    for (const limit of [7, 20, 21, 100, 499]) {
      const { sizes, keys } = await walk(list, id, limit)
      expect(keys).toEqual(whole.keys)
      expect(sizes.slice(0, -1)).toEqual(Array(sizes.length - 1).fill(limit))
    }
    expect((await walk(list, id, 50)).sizes).toEqual(Array(10).fill(50))
  })

  it('hidden edges do not shorten pages or shift cursors', async () => {
    const id = await hub(300, 30)
    expect((await walk(list, id, 2)).sizes).toEqual([2, 2, 2, 2, 2])
    expect((await walk(list, id, 3)).sizes).toEqual([3, 3, 3, 1])
  })

  it('a page has 100 edges by default', async () => {
    const id = await hub(101)
    for (const input of [{}, { limit: null, cursor: null }]) {
      const { keys, next_cursor } = await list(id, input)
      expect([keys.length, next_cursor]).toEqual([100, expect.any(String)])
    }
  })

  it('a cursor still works when its row is gone', async () => {
    const id = await hub(10)
    const { keys } = await list(id, {})
    const { next_cursor: cursor } = await list(id, { limit: 3 })
    const [from, key] = (keys[2] as string).split(' ')
    const { db } = test.service.app
    await db.run(sql`delete from cell_field where source_id = ${from}::uuid and name = ${key}`)
    await db.run(sql`delete from cell_item where parent_id = ${from}::uuid and position = ${key}`)
    expect((await list(id, { cursor })).keys).toEqual(keys.slice(3))
  })

  it('a cursor gives no access: neither to edges hidden since, nor to those of a cell hidden since', async () => {
    const id = await hub(5)
    const { next_cursor: cursor } = await list(id, { limit: 2 })
    const { db } = test.service.app
    await db.run(sql`
      update cell set visibility = 'private' where id in (select child_id from cell_item where parent_id = ${id}::uuid)`)
    expect(await list(id, { cursor })).toEqual({ keys: [], next_cursor: null })
    await db.run(sql`update cell set visibility = 'private' where id = ${id}::uuid`)
    expect(await reasonOf(list(id, { cursor }))).toBe('cell_not_found')
  })

  it('a cursor is bound to list, cell and caller, but not to the page size', async () => {
    const [id, other] = [await hub(5), await hub(5)]
    const { next_cursor } = await list(id, { limit: 2 })
    const cursor = next_cursor as string
    expect((await list(id, { cursor, limit: 500 })).keys).toHaveLength(3)
    expect((await list(id.toUpperCase(), { cursor })).keys).toHaveLength(3)
    expect(await reasonOf(list(other, { cursor }))).toBe('invalid_params')
    expect(await reasonOf(list(id, { cursor }, ada))).toBe('invalid_params')
    for (const [, foreign] of lists)
      if (foreign !== list) expect(await reasonOf(foreign(id, { cursor }))).toBe('invalid_params')
    for (const wrong of [cursor.slice(1), `${cursor}a`, cursor.toLowerCase(), ''])
      expect(await reasonOf(list(id, { cursor: wrong }))).toBe('invalid_params')
  })
})

it('the longest positions and names fit into a cursor', async () => {
  const { cell } = await bob.client.cell_create({ data: {} })
  for (const end of ['a', 'b', 'c']) {
    const position = `${'z'.repeat(199)}${end}`
    await bob.client.cell_item_insert({ parent_id: cell.id, child_id: cell.id, position })
    const name = `${'z'.repeat(63)}${end}`
    await bob.client.cell_field_set({ source_id: cell.id, name, target_id: cell.id })
  }
  for (const [, list] of lists) {
    const { sizes, keys } = await walk(list, cell.id, 1)
    expect(sizes).toEqual([1, 1, 1])
    expect(new Set(keys).size).toBe(3)
  }
})

it('sorts by bytes even in a database with a linguistic collation', async ({ skip }) => {
  const made = await emptyDatabaseWith(
    `ck_icu_edges_${process.pid}`,
    `locale_provider icu icu_locale 'en-US' locale 'C' encoding 'UTF8'`,
  ).catch((error: { code?: string }) => {
    // Skipped for builds without ICU; any other error fails the test.
    if (error.code !== '0A000') throw error
  })
  if (!made) return skip()
  await migrate(made.connection)
  const icu = await testService({ database_url: toUrl(made.connection) })
  const account = await icu.account()
  const { client } = account
  const { id } = (await client.cell_create({ data: {} })).cell
  for (const position of ['V', 'a', 'B', '9', '90', '8z'])
    await client.cell_item_insert({ parent_id: id, child_id: id, position })
  for (const name of ['b', 'a_b', 'ab', 'a', 'a1'])
    await client.cell_field_set({ source_id: id, name, target_id: id })
  const keys = await Promise.all(
    lists
      .slice(0, 2)
      .map(async ([, list]) => (await walk(list, id, 1, account)).keys.map((key) => key.slice(37))),
  )
  expect(keys).toEqual([
    ['a', 'a1', 'a_b', 'ab', 'b'],
    ['8z', '9', '90', 'B', 'V', 'a'],
  ])
  await icu.close()
  await made.drop()
})

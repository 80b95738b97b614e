import { describe, expect, test as it } from 'vitest'
import { cellRow, cellRows, countedUsage } from '../../../test/helpers/cell-rows.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { afterPrefix } from '../../db/prefix.ts'
import type { TestAccount } from '../../testing/index.ts'
import { ownMax } from './branches.ts'
import { walkMax } from './walks.ts'

const test = await serviceForFile()
const [ada, root] = await Promise.all([test.account(), test.account({ roles: ['admin'] })])

type Input = Parameters<TestAccount['client']['cell_list']>[0]

// A delete would look for the grants and edges of each of the thousands of cells.
const emptied = () => test.service.app.db.run(sql`truncate cell, cell_usage cascade`)

/** The paths of all pages. */
async function walked({ client }: TestAccount, input: Input, start: string | null = null) {
  const paths: (string | null)[] = []
  let cursor = start
  do {
    const page: Awaited<ReturnType<typeof client.cell_list>> = await client.cell_list({ ...input, cursor })
    paths.push(...page.cells.map(({ path }) => path))
    cursor = page.next_cursor
  } while (cursor)
  return paths
}

describe('path_prefix', () => {
  it.each<[string, string[], string[]]>([
    ['a_%', ['a_%', 'a_%b'], ['aXb', 'a_', 'ab%']],
    ['a\\', ['a\\', 'a\\b'], ['a', 'a/']],
    ['docs/', ['docs/', 'docs/x', 'docs/\u{10ffff}'], ['docs', 'docs0', 'Docs/x', 'docs.']],
    ['x\ud7ff', ['x\ud7ff', 'x\ud7ffa'], ['x\ue000', 'x']],
    ['y\u{10ffff}', ['y\u{10ffff}', 'y\u{10ffff}a'], ['z', 'y\uffff']],
    ['\u{10ffff}', ['\u{10ffff}', '\u{10ffff}\u{10ffff}'], ['\uffff']],
    ['é', ['é', 'éa'], ['e\u0301', 'è', 'ê']],
  ])('%j is literal', async (path_prefix, within, without) => {
    const kind = 'k'
    for (const path of [...within, ...without]) await cellRow(test, { kind, path, visibility: 'public' })
    for (const client of [test.client(), ada.client, root.client]) {
      const { cells } = await client.cell_list({ kind, path_prefix })
      expect(cells.map(({ path }) => path).sort()).toEqual([...within].sort())
    }
    await test.service.app.db.run(sql`delete from cell where kind = ${kind}`)
  })

  it('orders by path in byte order, ascending by default, a page at a time', async () => {
    const paths = [
      'walk/',
      'walk/10',
      'walk/2',
      'walk/B',
      'walk/a',
      'walk/é',
      'walk/\uffff',
      'walk/\u{10000}',
    ]
    for (const [at, path] of [...paths.entries()].reverse())
      await cellRow(test, {
        path,
        ...(at % 2 === 0 ? { visibility: 'public' } : { visibility: 'private', created_by: ada.actor_id }),
      })
    expect(await walked(ada, { path_prefix: 'walk/', limit: 3 })).toEqual(paths)
    expect(await walked(root, { path_prefix: 'walk/', limit: 1, order_direction: 'asc' })).toEqual(paths)
    const descending = { path_prefix: 'walk/', limit: 2, order_direction: 'desc' } as const
    expect(await walked(ada, descending)).toEqual([...paths].reverse())
    expect(await walked(root, { ...descending, visibility: 'private' })).toEqual(
      paths.filter((_, at) => at % 2 === 1).reverse(),
    )
    expect(await walked(ada, { ...descending, created_by: ada.actor_id })).toEqual(
      paths.filter((_, at) => at % 2 === 1).reverse(),
    )
    await emptied()
  })

  it.each(['created_at', 'updated_at'] as const)('refuses order_by %s with it', async (order_by) => {
    for (const client of [test.client(), ada.client])
      expect(await client.try.cell_list({ path_prefix: 'a', order_by })).toMatchObject({
        error: {
          data: { reason: 'invalid_params', issues: [{ path: ['order_by'], code: 'invalid_value' }] },
        },
      })
  })

  it.each([
    ['asc', '語'],
    ['desc', '語'],
    ['asc', '\u{10ffff}'],
    ['desc', '\u{10ffff}'],
  ] as const)(
    'goes on %s after a path of many %j, which is longer than a cursor, even if its cell moves or is gone',
    async (order_direction, letter) => {
      const stem = `long/${letter.repeat(249)}/`
      // 256 characters, which differ only at the end.
      const paths = Array.from({ length: 7 }, (_, at) => `${stem}${at}`)
      for (const path of [...paths, '\u0001'.repeat(256)]) await cellRow(test, { path, visibility: 'public' })
      const list = { path_prefix: 'long/', limit: 1, order_direction } as const
      const all = order_direction === 'asc' ? paths : [...paths].reverse()
      expect(await walked(ada, list)).toEqual(all)
      expect(await walked(ada, { ...list, limit: 3, path_prefix: `long/${letter.repeat(200)}` })).toEqual(all)
      const { cells, next_cursor } = await ada.client.cell_list({ ...list, limit: 3 })
      expect((next_cursor as string).length).toBeLessThanOrEqual(512)
      const [cell_id, path] = [cells[2]?.id as string, cells[2]?.path as string]
      const others = all.filter((one) => one !== path)
      // The cursor could not hold the end of the path: if that has changed, no cell is skipped.
      const last = `${stem}${order_direction === 'asc' ? '9' : '!'}`
      await root.client.cell_update({ cell_id, path: last })
      expect(await walked(ada, list, next_cursor)).toEqual([...others, last])
      await root.client.cell_update({ cell_id, path })
      await root.client.cell_delete({ cell_id })
      expect(await walked(ada, list, next_cursor)).toEqual(all.slice(3))
      await test.service.app.db.run(sql`delete from cell where id = ${cell_id}::uuid`)
      expect(await walked(ada, list, next_cursor)).toEqual(others)
      expect((await ada.client.cell_list({ path_prefix: '\u0001', limit: 1 })).cells).toHaveLength(1)
      await emptied()
    },
  )

  it('finds a shared cell under the path that it has now', async () => {
    const cell_id = await cellRow(test, { path: 'old/1' })
    await test.cellGrant(cell_id, 'viewer', { actor_id: ada.actor_id })
    const found = async () => {
      const lists = ['old/', 'new/'].map((path_prefix) => ada.client.cell_list({ path_prefix }))
      return (await Promise.all(lists)).map(({ cells }) => cells.map(({ path }) => path))
    }
    expect(await found()).toEqual([['old/1'], []])
    await root.client.cell_update({ cell_id, path: 'new/1' })
    expect(await found()).toEqual([[], ['new/1']])
    await root.client.cell_update({ cell_id, path: null })
    expect(await found()).toEqual([[], []])
    await emptied()
  })

  it.each<[string, 'public' | 'private']>([
    ['public ones', 'public'],
    ['private ones, to an admin', 'private'],
  ])('reads about a page among thousands, of all creators or of one: %s', async (_what, visibility) => {
    const created_by = sql`${root.actor_id}::uuid`
    await cellRows(test, 6000, {
      ...{ created_by, visibility: sql`${visibility}` },
      kind: sql`case when i % 1000 = 1 then 'k' end`,
      path: sql`'far/' || i`,
    })
    await cellRows(test, 6000, {
      created_by: sql`${ada.actor_id}::uuid`,
      visibility: sql`${visibility}`,
      path: sql`case when i % 3 = 0 then 'near/' || i end`,
    })
    await countedUsage(test)
    await test.service.app.db.run(sql`vacuum analyze cell`)
    for (const creator of [{}, { created_by: root.actor_id }]) {
      const list = { ...creator, path_prefix: 'far/', limit: 20 }
      let cursor: string | null = null
      for (let page = 0; page < 3; page++) {
        const sent = { ...list, cursor }
        const { rows, scanned } = await workOf(test.databaseUrl, async () => {
          cursor = (await root.client.cell_list(sent)).next_cursor
        })
        expect(scanned).toEqual([])
        expect(rows.cell).toBeLessThan(100)
        expect(cursor).not.toBeNull()
      }
      expect(await walked(root, { ...list, kind: 'k' })).toEqual(
        [1, 1001, 2001, 3001, 4001, 5001].map((n) => `far/${n}`),
      )
    }
    await emptied()
  })

  it('examines no hidden cell under it if nearly all cells are public', async () => {
    const created_by = sql`${root.actor_id}::uuid`
    const rows = (count: number, visibility: string, prefix: string) =>
      cellRows(test, count, {
        created_by,
        visibility: sql`${visibility}`,
        path: sql`${prefix} || ${visibility} || i`,
      })
    await rows(20_000, 'public', 'open/')
    await rows(1500, 'private', 'mixed/')
    await rows(5, 'public', 'mixed/')
    await countedUsage(test)
    await test.service.app.db.run(sql`vacuum analyze cell`)
    for (const creator of [{}, { created_by: root.actor_id }]) {
      const list = { path_prefix: 'mixed/', ...creator }
      expect((await ada.client.cell_list(list)).cells).toHaveLength(5)
      const { rows } = await workOf(test.databaseUrl, () => ada.client.cell_list(list))
      expect(rows.cell).toBeLessThan(50)
    }
    await emptied()
  })

  it('finds the public cells of one creator, whether few or many, near or far along the paths', async () => {
    const visibility = sql`'public'`
    const created_by = (one: TestAccount) => sql`${one.actor_id}::uuid`
    const nobody = await test.account()
    await cellRows(test, walkMax + 500, { visibility, path: sql`'wide/' || i` })
    await cellRows(test, 2 * ownMax, {
      ...{ visibility, created_by: created_by(ada) },
      kind: sql`case when i % 2 = 0 then 'k' end`,
      path: sql`case when i <= 30 then 'wide/z' || i when i <= 60 then 'wide/0' || i end`,
    })
    await cellRows(test, 30, { visibility, created_by: created_by(root), path: sql`'wide/y' || i` })
    await countedUsage(test)
    await test.service.app.db.run(sql`vacuum analyze cell`)
    const paths = (prefix: string, from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, at) => `${prefix}${from + at}`).sort()
    const near = paths('wide/0', 31, 60)
    const far = paths('wide/z', 1, 30)
    for (const caller of [ada, root, nobody]) {
      const list = { path_prefix: 'wide/', created_by: ada.actor_id, limit: 11 }
      expect(await walked(caller, list)).toEqual([...near, ...far])
      expect(await walked(caller, { ...list, order_direction: 'desc' })).toEqual([...near, ...far].reverse())
      expect(await walked(caller, { ...list, kind: 'k' })).toEqual(
        [...near, ...far].filter((path) => Number(path.slice(6)) % 2 === 0),
      )
      expect(await walked(caller, { ...list, created_by: root.actor_id })).toEqual(paths('wide/y', 1, 30))
      const { rows } = await workOf(test.databaseUrl, () => caller.client.cell_list({ ...list, limit: 5 }))
      expect(rows.cell).toBeLessThan(walkMax + 3 * ownMax)
    }
    await emptied()
  })
})

it.each([
  ['a', 'b'],
  ['ab', 'ac'],
  ['a\ud7ff', 'a\ue000'],
  ['a\uffff', 'a\u{10000}'],
  ['a\u{10ffff}', 'b'],
  ['\u{10ffff}\u{10ffff}', undefined],
])('the first text after all that start with %j is %j', (prefix, after) => {
  expect(afterPrefix(prefix)).toBe(after)
})

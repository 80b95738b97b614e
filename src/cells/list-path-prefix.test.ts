import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, cellRows } from '../../test/helpers/cell-rows.ts'
import { workOf } from '../../test/helpers/plans.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { fewMax } from './list-prefix.ts'
import { afterPrefix } from './list-walk.ts'

let test: TestService
let ada: TestAccount
let root: TestAccount
beforeAll(async () => {
  test = await testService()
  ;[ada, root] = await Promise.all([test.account(), test.account({ roles: ['admin'] })])
})
afterAll(() => test.close())

type Input = Parameters<TestAccount['client']['cell_list']>[0]

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

  it('finds the same page whether few or very many cells lie under it', async () => {
    const kind = 'k'
    // Past `fewMax` matches the statement takes another way.
    await cellRows(test, 5100, {
      kind: sql`case when i % 1000 = 1 then ${kind}::text end`,
      visibility: sql`'public'`,
      path: sql`'many/' || i`,
      created_at: sql`'2020-01-01'::timestamptz + i * interval '1 second'`,
    })
    const paths = async (input: Input) => (await ada.client.cell_list(input)).cells.map(({ path }) => path)
    const prefixes = { many: 'many/', few: 'many/5' }
    expect(await paths({ path_prefix: prefixes.many, limit: 3 })).toEqual([
      'many/5100',
      'many/5099',
      'many/5098',
    ])
    expect(await paths({ path_prefix: prefixes.few, limit: 3 })).toEqual([
      'many/5100',
      'many/5099',
      'many/5098',
    ])
    for (const path_prefix of Object.values(prefixes)) {
      const walked = []
      let cursor: string | null = null
      do {
        const page = await ada.client.cell_list({
          path_prefix,
          kind,
          limit: 2,
          order_direction: 'asc',
          cursor,
        })
        walked.push(...page.cells.map(({ path }) => path))
        cursor = page.next_cursor
      } while (cursor)
      const all = ['many/1', 'many/1001', 'many/2001', 'many/3001', 'many/4001', 'many/5001']
      expect(walked).toEqual(all.filter((path) => path.startsWith(path_prefix)))
    }
    await test.service.app.db.run(sql`delete from cell where path like 'many/%'`)
  })

  it.each(['public', 'private'] as const)(
    'finds very many %s cells behind many others',
    async (visibility) => {
      const [first, rest] = ['2020-01-01', 2100]
      const created_by = sql`${root.actor_id}::uuid`
      await cellRows(test, rest, {
        ...{ created_by, visibility: sql`${visibility}` },
        kind: sql`case when i % 1000 = 1 then 'k' end`,
        path: sql`'far/' || i`,
        created_at: sql`${first}::timestamptz + i * interval '1 second'`,
      })
      await cellRows(test, 3 * rest, {
        created_by: sql`case when i % 2 = 0 then ${created_by} else ${ada.actor_id}::uuid end`,
        visibility: sql`${visibility}`,
        path: sql`case when i % 3 = 0 then 'near/' || i end`,
        created_at: sql`${first}::timestamptz + (6000 + i) * interval '1 second'`,
      })
      await test.service.app.db.run(sql`vacuum analyze cell`)
      for (const order_by of ['created_at', 'updated_at'] as const)
        for (const creator of [{}, { created_by: root.actor_id }]) {
          const list = { path_prefix: 'far/', order_by, limit: 3, ...creator }
          const page = await root.client.cell_list(list)
          const next = await root.client.cell_list({ ...list, cursor: page.next_cursor })
          expect([...page.cells, ...next.cells].map(({ path }) => path)).toEqual(
            [0, 1, 2, 3, 4, 5].map((n) => `far/${rest - n}`),
          )
          // What does not match costs no look at the cell.
          const work = await workOf(test.databaseUrl, () => root.client.cell_list(list))
          expect(work.indexes, JSON.stringify(list)).toContain(
            `cell_live_${creator.created_by ? 'own_' : ''}path_${order_by === 'created_at' ? 'created' : 'changed'}`,
          )
          expect(work.rows.cell).toBeLessThan(2 * rest)
          expect(work.pages).toBeLessThan(fewMax + 500)
        }
      const { cells, next_cursor } = await root.client.cell_list({ path_prefix: 'far/', kind: 'k' })
      expect(cells.map(({ path }) => path)).toEqual([2001, 1001, 1].map((n) => `far/${n}`))
      expect(next_cursor).toBe(null)
      await test.service.app.db.run(sql`delete from cell`)
    },
  )

  it('looks at no hidden cell under it, where nearly all cells are public', async () => {
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
    await test.service.app.db.run(sql`vacuum analyze cell`)
    for (const creator of [{}, { created_by: root.actor_id }]) {
      const list = { path_prefix: 'mixed/', ...creator }
      expect((await ada.client.cell_list(list)).cells).toHaveLength(5)
      const { rows } = await workOf(test.databaseUrl, () => ada.client.cell_list(list))
      expect(rows.cell).toBeLessThan(50)
    }
    await test.service.app.db.run(sql`delete from cell`)
  })
})

it.each([
  ['a', 'b'],
  ['ab', 'ac'],
  ['a\ud7ff', 'a\ue000'],
  ['a\uffff', 'a\u{10000}'],
  ['a\u{10ffff}', 'b'],
  ['\u{10ffff}\u{10ffff}', undefined],
])('the first text after all that begin with %j is %j', (prefix, after) => {
  expect(afterPrefix(prefix)).toBe(after)
})

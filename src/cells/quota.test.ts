import { expect, test as it } from 'vitest'
import { z } from 'zod'
import { children } from '../../test/helpers/cell-graphs.ts'
import { reasonOf, tally } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sweep as cleanUp } from '../cleanup/cleanup.ts'
import { sql } from '../db/db.ts'
import { type Actions, mutation, cells as ownCells } from '../index.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

const [cells, bytes] = [5, 1000]
const test = await serviceForFile({ max_account_cells: cells, max_account_bytes: bytes })

const create = ({ client }: TestAccount, size = 2) =>
  client.cell_create({ data: size === 2 ? {} : { a: 'x'.repeat(size - 8) } })
/** The counted usage next to what is actually stored. */
const usage = async (account: Pick<TestAccount, 'id'>, on: Pick<TestService, 'service'> = test) => {
  const sums = sql`coalesce(sum(cells), 0)::int as cells, coalesce(sum(bytes), 0)::int as bytes`
  const { db } = on.service.app
  const counted = await db.first(sql`select ${sums} from cell_usage where account_id = ${account.id}`)
  const stored = await db.first(sql`
    select count(*)::int as cells, coalesce(sum(data_bytes), 0)::int as bytes
    from cell join actor on actor.id = cell.created_by where actor.account_id = ${account.id}`)
  return { counted, stored }
}
const isRight = async (account: TestAccount, wanted: object) =>
  expect(await usage(account)).toEqual({ counted: wanted, stored: wanted })

it('an account cannot exceed its max of cells, by several actors or concurrent calls', async () => {
  const ada = await test.account()
  const second = await test.actor(ada.id, 'second')
  const calls = Array.from({ length: 20 }, (_, n) =>
    ada.client.cell_create({ data: {}, acting: n % 2 ? second : ada.actor_id }),
  )
  expect(await tally(calls)).toEqual({ ok: cells, cell_quota_exceeded: 20 - cells })
  await isRight(ada, { cells, bytes: 2 * cells })
  expect(await ada.client.try.cell_create({ data: {}, acting: second })).toMatchObject({
    error: { status: 409, reason: 'cell_quota_exceeded', data: { limit: 'cells', max: cells } },
  })
})

it('an account cannot exceed its max of bytes, by creation, by growth or through editors', async () => {
  const [ada, bob] = await Promise.all([test.account(), test.account()])
  const { cell } = await create(ada, 400)
  await create(ada, 400)
  expect(await reasonOf(create(ada, 201))).toBe('cell_quota_exceeded')
  const grow = (by: TestAccount, size: number) =>
    by.client.cell_update({ cell_id: cell.id, data: { a: 'x'.repeat(size - 8) } })
  await test.cellGrant(cell.id, 'editor', { actor_id: bob.actor_id })
  expect(await reasonOf(grow(bob, 601))).toBe('cell_quota_exceeded')
  expect(await tally(Array.from({ length: 4 }, () => grow(bob, 600)))).toEqual({ ok: 4 })
  await isRight(ada, { cells: 2, bytes })
  await isRight(bob, { cells: 0, bytes: 0 })
  expect(await reasonOf(create(ada))).toBe('cell_quota_exceeded')
  // Writes that add nothing succeed at the limit.
  await ada.client.cell_update({ cell_id: cell.id, visibility: 'public' })
  await grow(ada, 100)
  await isRight(ada, { cells: 2, bytes: 500 })
})

it('a write beside others that take and free room is refused for lack of room alone', async () => {
  const ada = await test.account()
  const own = [(await create(ada)).cell, (await create(ada)).cell, (await create(ada)).cell]
  const came = await Promise.all(
    Array.from({ length: 12 }, async (_, writer) => {
      const reasons: Record<string, number> = {}
      for (let n = 0; n < 20; n++) {
        const cell_id = own[(writer + n) % own.length]?.id as string
        const data = { a: 'x'.repeat((writer * n) % 3 === 0 ? 10 : 600), n }
        const reason = await reasonOf(ada.client.cell_update({ cell_id, data }))
        reasons[reason] = (reasons[reason] ?? 0) + 1
      }
      return Object.keys(reasons)
    }),
  )
  expect([...new Set(came.flat())].sort()).toEqual(['cell_quota_exceeded', 'ok'])
})

it('clones count everything that they create', async () => {
  const ada = await test.account()
  const { cell } = await create(ada)
  await children(test, cell.id, 2, ada.actor_id)
  // The children are rows that no call made, so they are not counted.
  const clone = () => ada.client.cell_clone({ source_id: cell.id, deep: true })
  expect((await clone()).cloned_count).toBe(3)
  expect(await reasonOf(clone())).toBe('cell_quota_exceeded')
  expect((await usage(ada)).counted).toEqual({ cells: 4, bytes: 2 + 2 + 9 * 2 + 2 })
  expect(
    await tally(Array.from({ length: 6 }, () => ada.client.cell_clone({ source_id: cell.id }))),
  ).toMatchObject({ ok: 1 })
  expect((await usage(ada)).counted).toMatchObject({ cells })
})

it('near the limit any number of concurrent clones and creations wait for each other', async () => {
  await using node = await testService({ max_account_cells: 1000 })
  await using other = await testService({ max_account_cells: 1000, database_url: node.databaseUrl })
  const ada = await node.account()
  const { cell } = await create(ada)
  await children(node, cell.id, 5, ada.actor_id)
  const clients = [ada.client, other.client(ada.cookie)]
  const calls = Array.from({ length: 12 }, (_, n) => clients[n % 2] as TestAccount['client']).flatMap(
    (client) => [client.cell_clone({ source_id: cell.id, deep: true }), client.cell_create({ data: {} })],
  )
  expect(await tally(calls)).toEqual({ ok: 24 })
  expect((await usage(ada, node)).counted).toMatchObject({ cells: 1 + 12 * 6 + 12 })
})

it('near the limit a clone gets its turn among writers that never pause', async () => {
  const own = { max_account_bytes: 200_000_000, limit_account: null, limit_cell_create: null }
  await using node = await testService(own)
  const ada = await node.account()
  const { cell } = await create(ada)
  let isDone = false
  const writers = Array.from({ length: 4 }, async () => {
    while (!isDone) await create(ada)
  })
  const outcomes: string[] = []
  for (let n = 0; n < 3; n++) outcomes.push(await reasonOf(ada.client.cell_clone({ source_id: cell.id })))
  isDone = true
  await Promise.all(writers)
  expect(outcomes).toEqual(['ok', 'ok', 'ok'])
})

it('calls that store hundreds of cells each, in methods of the application, do not exceed a max together', async () => {
  const go = Promise.withResolvers<void>()
  let written = 0
  const page_fill = mutation({
    doc: 'Makes many cells, and commits them when the test says so.',
    auth: { account: 'required', actor: 'required' },
    event: 'cell_create',
    input: z.strictObject({ count: z.int() }),
    output: z.object({ count: z.int() }),
    async handler({ count }, context) {
      const create = () => ownCells.create(context, { data: {} })
      await create()
      // One round trip each would take longer on a busy machine than a transaction may.
      await Promise.all(Array.from({ length: count - 1 }, create))
      written += 1
      await go.promise
      return { count }
    },
  })
  type All = Actions & { page_fill: typeof page_fill }
  await using own = await testService<All>({
    actions: { page_fill },
    max_account_cells: 1300,
    // On a busy machine the others wait longer than 10 s for the first.
    statement_timeout_ms: 30_000,
  })
  const ada = await own.account()
  const fill = (count: number) => ada.client.page_fill({ count })
  const calls = Promise.all(Array.from({ length: 5 }, () => reasonOf(fill(300))))
  await expect
    .poll(
      async () => {
        const { waiting } = await own.service.app.db.one<{ waiting: number }>(sql`
          select count(*)::int as waiting from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`)
        return written + waiting
      },
      { timeout: 30_000 },
    )
    .toBe(5)
  go.resolve()
  expect((await calls).sort()).toEqual(['cell_quota_exceeded', 'ok', 'ok', 'ok', 'ok'])
  expect([await reasonOf(fill(101)), await reasonOf(fill(99)), await reasonOf(fill(1))]).toEqual([
    'cell_quota_exceeded',
    'ok',
    'ok',
  ])
  const all = { cells: 1300, bytes: 2600 }
  expect(await usage(ada, own)).toEqual({ counted: all, stored: all })
})

it('admins have no quota, but their cells are counted', async () => {
  const root = await test.account({ roles: ['admin'] })
  for (let n = 0; n < cells + 2; n++) await create(root, 200)
  await isRight(root, { cells: cells + 2, bytes: 1400 })
})

it('deleted cells count until they are purged', async () => {
  await using own = await testService({ max_account_cells: cells, cell_tombstone_retention_days: 1 })
  const ada = await own.account()
  const { client } = ada
  const made = await Promise.all(Array.from({ length: cells }, () => client.cell_create({ data: {} })))
  await client.cell_delete({ cell_id: made[0]?.cell.id as string })
  expect(await reasonOf(client.cell_create({ data: {} }))).toBe('cell_quota_exceeded')
  await own.service.app.db.run(sql`
    update cell set created_at = '2020-01-01', deleted_at = '2020-01-02' where deleted_at is not null`)
  await cleanUp(own.service.app)
  expect(await usage(ada, own)).toEqual({
    counted: { cells: cells - 1, bytes: 2 * (cells - 1) },
    stored: { cells: cells - 1, bytes: 2 * (cells - 1) },
  })
  expect(await reasonOf(client.cell_create({ data: {} }))).toBe('ok')
})

it('far from the limit writers do not wait for each other, and everything is counted', async () => {
  await using own = await testService()
  const ada = await own.account()
  const made = await Promise.all(
    Array.from({ length: 30 }, (_, n) => ada.client.cell_create({ data: { n } })),
  )
  await Promise.all(
    made.map(({ cell }, n) => ada.client.cell_update({ cell_id: cell.id, data: { n: 'x'.repeat(n) } })),
  )
  await Promise.all(made.slice(0, 5).map(({ cell }) => ada.client.cell_clone({ source_id: cell.id })))
  const { counted, stored } = await usage(ada, own)
  expect(counted).toEqual(stored)
  expect(counted).toMatchObject({ cells: 35 })
})

it('an account that writes one call at a time is counted in one row, whichever connections it gets', async () => {
  await using own = await testService()
  const people = await Promise.all(Array.from({ length: 4 }, () => own.account()))
  for (let n = 0; n < 8; n++) await Promise.all(people.map((person) => create(person, 2 + 10 * n)))
  const { rows } = await own.service.app.db.one<{ rows: number }>(
    sql`select count(*)::int as rows from cell_usage where account_id = ${people[0]?.id}`,
  )
  expect(rows).toBe(1)
  await Promise.all(
    people.map(async (person) => {
      const { counted, stored } = await usage(person, own)
      expect(counted).toEqual(stored)
    }),
  )
})

it('writes to cells have a budget, and clones have one by what they create', async () => {
  await using small = await testService({ limit_cell_write: '3/900', limit_cell_clone: '4/900' })
  const ada = await small.account()
  const { cell } = await ada.client.cell_create({ data: {} })
  await children(small, cell.id, 3, ada.actor_id)
  const clone = () => ada.client.cell_clone({ source_id: cell.id, deep: true })
  // 4 for the cells, 1 for their data, 1 for their edges.
  expect([await reasonOf(clone()), await reasonOf(clone())]).toEqual(['ok', 'rate_limited'])
  const outcomes: string[] = []
  for (let n = 0; n < 4; n++)
    outcomes.push(await reasonOf(ada.client.cell_update({ cell_id: cell.id, data: { n } })))
  expect(outcomes).toEqual(['ok', 'ok', 'ok', 'rate_limited'])
  expect(await reasonOf(ada.client.cell_delete({ cell_id: cell.id }))).toBe('rate_limited')
})

it('clones are charged for many hidden edges too, since each is looked up, but not for few', async () => {
  await using small = await testService({ limit_cell_clone: '3/900' })
  const bob = await small.account()
  const outcomes = async (hidden: number) => {
    const ada = await small.account()
    const { cell } = await ada.client.cell_create({ data: {} })
    await children(small, cell.id, hidden, bob.actor_id)
    const clone = () => ada.client.cell_clone({ source_id: cell.id, deep: true })
    return [await reasonOf(clone()), await reasonOf(clone())]
  }
  // A clone costs 1 for the cell and 1 for its data.
  expect(await outcomes(999)).toEqual(['ok', 'ok'])
  expect(await outcomes(1_000)).toEqual(['ok', 'rate_limited'])
})

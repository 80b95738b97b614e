import { afterAll, beforeAll, describe, expect, expectTypeOf, test as it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { type AccessTable, accessTable, allowed, as } from '../../test/helpers/access-table.ts'
import { cellRow, endRole } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { sql } from '../db/sql.ts'
import {
  type Actions,
  CellDataIssues,
  type CellTier,
  type CellWriter,
  cells,
  mutation,
  query,
  visibleCells,
} from '../index.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

const anyone = { account: 'optional', actor: 'optional' } as const
const someone = { account: 'required', actor: 'required' } as const
let then: () => unknown = () => undefined

const actions = {
  page_count: query({
    doc: 'How many cells of a kind the caller holds a tier on.',
    auth: anyone,
    input: z.strictObject({ tier: z.enum(['view', 'edit', 'manage']), kind: z.string().optional() }),
    output: z.object({ ids: z.array(z.string()) }),
    async handler({ tier, kind }, { actor, db }) {
      const rows = await db.rows<{ id: string }>(sql`
        select p.id from cell p where (${kind}::text is null or p.kind = ${kind})
          and ${visibleCells({ actor }, 'p', tier)} order by p.id`)
      return { ids: rows.map(({ id }) => id) }
    },
  }),
  page_read: query({
    doc: 'One cell, and all cells of its kind.',
    auth: anyone,
    input: z.strictObject({ id: z.string() }),
    output: z.unknown(),
    async handler({ id }, context) {
      const { cell } = await cells.get(context, { id })
      return { cell, ...(await cells.list(context, { kind: cell.kind ?? '', limit: 1 })) }
    },
  }),
  page_write: mutation({
    doc: 'Makes a page, changes it, and then does what the test says.',
    auth: someone,
    event: 'cell_create',
    input: z.strictObject({ data: z.record(z.string(), z.unknown()), path: z.string().optional() }),
    output: z.object({ id: z.string(), version: z.int(), seen: z.int() }),
    async handler({ data, path }, context) {
      const made = await cells.create(context, { kind: 'draft', data, ...(path && { path }) })
      const { id } = made.cell
      const { cell } = await cells.update(context, { cell_id: id, data_patch: { more: true } })
      const found = await cells.list(context, { kind: 'draft' })
      expectTypeOf(found.cells[0]).toEqualTypeOf<typeof cell | undefined>()
      expect((await cells.get(context, { id })).cell).toEqual(cell)
      await then()
      return { id, version: cell.version, seen: found.cells.length }
    },
  }),
  page_share: mutation({
    doc: 'Lets everyone with a role edit a cell.',
    auth: someone,
    event: 'cell_grant_create',
    input: z.strictObject({ cell_id: z.string(), role: z.string() }),
    output: z.unknown(),
    handler: async ({ cell_id, role }, context) =>
      await cells.grant(context, { cell_id, level: 'editor', principal: { role } }),
  }),
  page_edit: mutation({
    doc: 'Changes a cell.',
    auth: someone,
    event: 'cell_update',
    input: z.strictObject({ cell_id: z.string() }),
    output: z.object({ version: z.int() }),
    handler: async ({ cell_id }, context) =>
      (await cells.update(context, { cell_id, data_patch: { edited: true } })).cell,
  }),
  page_turn: mutation({
    doc: 'Changes a cell to each of these data in turn, in one transaction.',
    auth: someone,
    event: 'cell_update',
    input: z.strictObject({
      cell_id: z.string(),
      turns: z.array(z.record(z.string(), z.unknown())),
      isChecked: z.boolean(),
    }),
    output: z.object({ version: z.int() }),
    async handler({ cell_id, turns, isChecked }, context) {
      let { version } = (await cells.get(context, { id: cell_id })).cell
      for (const data of turns) {
        const check = isChecked && { expected_version: version }
        version = (await cells.update(context, { cell_id, data, ...check })).cell.version
      }
      return { version }
    },
  }),
  writing_query: query({
    doc: 'Writes a cell where nothing may be written.',
    auth: someone,
    output: z.unknown(),
    handler: async (_input, context) => {
      // @ts-expect-error A query has no audit rows and no transaction.
      return await cells.create(context, { data: {} })
    },
  }),
}

type All = Actions & typeof actions
let test: TestService<All>
let ada: TestAccount<All>
beforeAll(async () => {
  test = await testService<All>({
    actions,
    max_account_cells: 5,
    roles: [{ name: 'teacher', grant_paths: ['admin'] }],
    hooks: {
      validateData: (_kind: string | null, data: { bad?: unknown }) => {
        if (data.bad) throw new CellDataIssues([{ path: ['bad'], message: 'It is bad.' }])
        return data
      },
      authorizeCreate: (_caller: unknown, { data }: { data: { forbidden?: unknown } }) => !data.forbidden,
    },
  })
  ada = await test.account()
})
afterAll(() => test.close())

describe('visibleCells', () => {
  let table: AccessTable
  beforeAll(async () => {
    table = await accessTable(test as unknown as TestService)
  })
  const tiers: CellTier[] = ['view', 'edit', 'manage']

  it.each(tiers)('every caller finds exactly the cells of their tier: %s', async (tier) => {
    for (const [who, caller] of table.callers) {
      const client = caller.client as unknown as TestAccount<All>['client']
      const { ids } = await client.page_count({ tier, ...as(caller) })
      const should = [...table.targets.values()].filter((cell) => allowed(caller, cell)[tier])
      expect(ids, who).toEqual(should.map(({ id }) => id).sort())
    }
  })

  it('forgets a cell as soon as the role or the cell grant that showed it has ended', async () => {
    const [bob, eve] = [await test.account({ roles: ['teacher'] }), await test.account()]
    const { cell } = await ada.client.cell_create({ data: {}, kind: 'lesson' })
    await test.cellGrant(cell.id, 'editor', { role: 'teacher', scope_id: null })
    const { id } = await test.cellGrant(cell.id, 'viewer', { actor_id: eve.actor_id })
    const seen = async ({ client }: TestAccount<All>, tier: CellTier) =>
      (await client.page_count({ tier, kind: 'lesson' })).ids
    expect([await seen(bob, 'edit'), await seen(eve, 'view'), await seen(eve, 'edit')]).toEqual([
      [cell.id],
      [cell.id],
      [],
    ])
    await endRole(test as unknown as TestService, bob.actor_id, 'teacher')
    await ada.client.cell_grant_revoke({ grant_id: id })
    expect([await seen(bob, 'view'), await seen(eve, 'view')]).toEqual([[], []])
  })

  it.each([0, 70])(
    'finds the cells that one of many roles opens, beside %i grants of others',
    async (others) => {
      const [dean, kind] = [await test.account(), `deanery ${others}`]
      for (let i = 1; i <= 20; i++) await test.roleGrant({ actor_id: dean.actor_id, role: `dean ${i}` })
      const [, viewed, edited] = (await Promise.all(
        [0, 1, 2].map(() => cellRow(test as unknown as TestService, { kind, created_by: ada.actor_id })),
      )) as [string, string, string]
      await test.service.app.db.run(sql`
      insert into cell_grant (cell_id, level, role, cell_created_at)
      select id, 'editor', 'other ' || i, now() from cell, generate_series(1, ${others}::int) i where kind = ${kind}`)
      await test.cellGrant(viewed, 'viewer', { role: 'dean 9', scope_id: null })
      await test.cellGrant(edited, 'editor', { role: 'dean 9', scope_id: null })
      expect((await dean.client.page_count({ tier: 'view', kind })).ids).toEqual([viewed, edited].sort())
      expect((await dean.client.page_count({ tier: 'edit', kind })).ids).toEqual([edited])
    },
  )

  it('refuses an alias that the rule uses itself, that is no name, or a tier that does not exist', () => {
    for (const alias of ['me', 'g', 'k', 'of_cell', 'cell_grant', 'c where true or c', ''])
      expect(() => visibleCells({ actor: null }, alias)).toThrow(TypeError)
    expect(() => visibleCells({ actor: null }, 'c', 'live' as never)).toThrow(TypeError)
  })
})

describe('cells', () => {
  it('get and list show what the caller may see, and a hidden cell is like a missing one', async () => {
    const { cell } = await ada.client.cell_create({ data: {}, kind: 'shown', visibility: 'private' })
    expect(await ada.client.page_read({ id: cell.id })).toEqual({ cell, cells: [cell], next_cursor: null })
    expect(await reasonOf(test.client().page_read({ id: cell.id }))).toBe('cell_not_found')
    expect(await reasonOf(ada.client.page_read({ id: 'no id' }))).toBe('invalid_params')
  })

  it('create and update write as the built-in methods do, in the transaction of the handler', async () => {
    const bob = await test.account()
    const answer = await scenario(test, () => bob.client.page_write({ data: { label: 'One' } }), {
      audit: [
        { event_type: 'cell_create', account_id: bob.id, actor_id: bob.actor_id },
        { event_type: 'cell_update', account_id: bob.id, actor_id: bob.actor_id },
      ],
    })
    expect(answer).toMatchObject({ version: 2, seen: 1 })
    expect((await bob.client.cell_get({ id: answer.id })).cell).toMatchObject({
      kind: 'draft',
      visibility: 'private',
      created_by: bob.actor_id,
      data: { label: 'One', more: true },
    })
  })

  it.each([true, false])('update sees what the handler has written, checked: %s', async (isChecked) => {
    const { id } = (await ada.client.cell_create({ data: { turn: 0 } })).cell
    const turns = [{ turn: 1 }, { turn: 2 }, { turn: 0 }]
    expect(await ada.client.page_turn({ cell_id: id, turns, isChecked })).toEqual({ version: 4 })
    expect((await ada.client.cell_get({ id })).cell).toMatchObject({ data: { turn: 0 }, version: 4 })
  })

  it('grant shares what the caller manages, and nothing else', async () => {
    const [eve, bob] = [await test.account(), await test.account({ roles: ['teacher'] })]
    const { cell } = await eve.client.cell_create({ data: {} })
    const share = { cell_id: cell.id, role: 'teacher' }
    expect(await reasonOf(bob.client.page_share(share))).toBe('cell_not_found')
    await scenario(test, () => eve.client.page_share(share), {
      audit: [{ event_type: 'cell_grant_create', actor_id: eve.actor_id }],
    })
    expect(await reasonOf(bob.client.page_edit({ cell_id: cell.id }))).toBe('ok')
    expect(await reasonOf(bob.client.page_share(share))).toBe('cell_not_found')
    expect(await reasonOf(eve.client.page_share({ ...share, role: 'nobody' }))).toBe(
      'cell_grant_unknown_role',
    )
  })

  it('a mutation that fails after its writes leaves no cell, no usage, and failure rows only', async () => {
    const eve = await test.account()
    onTestFinished(() => {
      then = () => undefined
    })
    then = () => {
      throw new Error('the handler failed')
    }
    for (let tries = 0; tries < 6; tries++)
      await scenario(test, () => eve.client.page_write({ data: {} }), {
        reason: 'internal_error',
        audit: [
          { event_type: 'cell_create', outcome: 'failure' },
          { event_type: 'cell_update', outcome: 'failure' },
        ],
      })
    expect((await eve.client.cell_list({ created_by: eve.actor_id })).cells).toEqual([])
    const { app } = test.service
    expect(await app.db.rows(sql`select * from cell_usage where account_id = ${eve.id}::uuid`)).toEqual([])
  })

  it('quota, hooks, rights and the rules of data hold', async () => {
    const eve = await test.account()
    const wrong = (input: { data: Record<string, unknown>; path?: string }) =>
      reasonOf(eve.client.page_write(input))
    expect(await wrong({ data: {}, path: 'home' })).toBe('cell_path_admin_only')
    expect(await wrong({ data: { kind: 'x' } })).toBe('cell_kind_in_data')
    expect(await wrong({ data: { bad: true } })).toBe('cell_data_invalid')
    expect(await wrong({ data: { forbidden: true } })).toBe('cell_create_forbidden')
    expect(await wrong({ data: { text: 'x'.repeat(300_000) } })).toBe('invalid_params')
    for (let made = 0; made < 5; made++) expect(await wrong({ data: {} })).toBe('ok')
    expect(await wrong({ data: {} })).toBe('cell_quota_exceeded')
    const { cell } = await ada.client.cell_create({ data: {}, visibility: 'public' })
    expect(await reasonOf(eve.client.page_edit({ cell_id: cell.id }))).toBe('cell_not_found')
    expect(await reasonOf(ada.client.page_edit({ cell_id: cell.id }))).toBe('ok')
  })

  it('a cell is not written in a query, or without an actor', async () => {
    expect(await reasonOf(ada.client.writing_query())).toBe('internal_error')
    const nobody = { app: test.service.app, actor: null, audit: () => {} } as unknown as CellWriter
    await expect(cells.create(nobody, { data: {} })).rejects.toThrow(TypeError)
  })
})

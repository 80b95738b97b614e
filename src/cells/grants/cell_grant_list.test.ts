import { randomUUID } from 'node:crypto'
import { expect, test as it } from 'vitest'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

const cell = (row: Parameters<typeof cellRow>[1] = {}) => cellRow(test, { created_by: ada.actor_id, ...row })
/** Grants with two timestamps, so that ids decide the order within each. */
const many = (cell_id: string, count: number) =>
  test.service.app.db.run(sql`
    insert into cell_grant (cell_id, level, role, cell_created_at, created_at)
    select id, 'viewer', 'role_' || n, created_at, timestamptz '2026-01-01' + n % 2 * interval '1 day'
    from cell, generate_series(1, ${count}::int) n where id = ${cell_id}`)

it('returns every grant in full, oldest first; an empty list without grants', async () => {
  const cell_id = await cell()
  expect(await scenario(test, () => ada.client.cell_grant_list({ cell_id }))).toEqual({
    grants: [],
    next_cursor: null,
  })
  const scope_id = randomUUID()
  const first = await test.cellGrant(cell_id, 'editor', { actor_id: bob.actor_id })
  await test.service.app.db.run(sql`
    update cell_grant set created_at = '2026-01-01T00:00:00Z' where id = ${first.id}`)
  const second = await test.cellGrant(cell_id, 'viewer', { role: 'team', scope_id })
  for (const by of [ada, root])
    expect((await by.client.cell_grant_list({ cell_id })).grants).toEqual([
      { ...first, created_at: '2026-01-01T00:00:00.000Z' },
      second,
    ])
  expect(second).toEqual({
    id: second.id,
    cell_id,
    level: 'viewer',
    actor_id: null,
    role: 'team',
    scope_id,
    granted_by: null,
    created_at: second.created_at,
  })
})

it('returns grants of soft-deleted actors too', async () => {
  const [cell_id, gone] = [await cell(), await test.account()]
  const grant = await test.cellGrant(cell_id, 'viewer', { actor_id: gone.actor_id })
  await test.service.operations.deleteAccount({ account_id: gone.id }, { via: 'test' })
  expect((await ada.client.cell_grant_list({ cell_id })).grants).toEqual([grant])
})

it('pages through all grants once, by timestamp and id', async () => {
  const cell_id = await cell()
  await many(cell_id, 20)
  const seen: { id: string; created_at: string }[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<TestAccount['client']['cell_grant_list']>> =
      await ada.client.cell_grant_list({ cell_id, limit: 7, cursor })
    expect(page.grants).toHaveLength(page.next_cursor ? 7 : 6)
    seen.push(...page.grants)
    cursor = page.next_cursor
  } while (cursor)
  const key = ({ created_at, id }: { created_at: string; id: string }) => `${created_at} ${id}`
  expect(seen.map(key)).toEqual(seen.map(key).sort())
  expect(new Set(seen.map(({ id }) => id)).size).toBe(20)
})

it('a page is 100 without a limit and 500 at most; a cursor is for its cell and actor', async () => {
  const [cell_id, other] = [await cell(), await cell()]
  await many(cell_id, 120)
  const { grants, next_cursor } = await ada.client.cell_grant_list({ cell_id })
  expect(grants).toHaveLength(100)
  expect((await ada.client.cell_grant_list({ cell_id, limit: 500 })).grants).toHaveLength(120)
  for (const limit of [0, 501, 1.5])
    expect(await reasonOf(ada.client.cell_grant_list({ cell_id, limit }))).toBe('invalid_params')
  for (const [by, id] of [
    [ada, other],
    [root, cell_id],
  ] as const)
    expect(await reasonOf(by.client.cell_grant_list({ cell_id: id, cursor: next_cursor }))).toBe(
      'invalid_params',
    )
})

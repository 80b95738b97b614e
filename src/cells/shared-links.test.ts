import { afterAll, describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { actions } from '../actions.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

/** Edges added and cells deleted at the same moment, which share a statement and its commit. */

const test = await serviceForFile()
const { db } = test.service.app
const [ada, bob] = await Promise.all([test.account(), test.account()])
const missing = '11111111-1111-4111-8111-111111111111'
const made = (owner: TestAccount, row: Parameters<typeof cellRow>[1] = {}) =>
  cellRow(test, { created_by: owner.actor_id, ...row })
const far = await made(ada, { visibility: 'public' })

type Method = Extract<keyof typeof actions, `cell_${string}`>
const call = (method: Method, { cookie }: TestAccount, input: object) =>
  test.service.call(method, input as never, { headers: { cookie } }).then(
    () => 'ok',
    (error: { data: { reason: string } }) => error.data.reason,
  )
const entries = (method: Method, cell_id: string) =>
  db.rows(sql`
    select outcome, actor_id from audit_entries()
    where event_type = ${method} and ${cell_id} in (metadata ->> 'cell_id', metadata ->> 'source_id', metadata ->> 'parent_id')`)

describe.each([
  {
    method: 'cell_field_set' as const,
    input: (source_id: string, name: string, target_id: string) => ({ source_id, name, target_id }),
    edges: sql`select source_id as anchor_id, name as key, target_id as far_id, xmin::text as commit from cell_field`,
    again: 'ok',
  },
  {
    method: 'cell_item_insert' as const,
    input: (parent_id: string, position: string, child_id: string) => ({ parent_id, position, child_id }),
    edges: sql`select parent_id as anchor_id, position as key, child_id as far_id, xmin::text as commit from cell_item`,
    again: 'cell_item_position_taken',
  },
])('$method', ({ method, input, edges, again }) => {
  const stored = (anchor_ids: readonly string[]) =>
    db.rows<{ anchor_id: string; key: string; far_id: string; commit: string }>(sql`
      select * from (${edges}) e where anchor_id = any(${anchor_ids}::uuid[]) order by anchor_id, key`)

  it('each of several callers and cells is answered and recorded as it is alone', async () => {
    const owners = await Promise.all(Array.from({ length: 12 }, () => test.account()))
    const anchors = await Promise.all(owners.map((owner) => made(owner)))
    const linked = (owner: TestAccount, index: number, key: string) =>
      call(method, owner, input(anchors[index] as string, key, far))
    const answers = await Promise.all(
      owners.flatMap((owner, index) => [linked(owner, index, 'a'), linked(owner, index, 'b')]),
    )
    expect(new Set(answers)).toEqual(new Set(['ok']))
    const found = await stored(anchors)
    expect(found.map(({ commit: _, ...edge }) => edge)).toEqual(
      [...anchors].sort().flatMap((anchor_id) => ['a', 'b'].map((key) => ({ anchor_id, key, far_id: far }))),
    )
    expect(new Set(found.map(({ commit }) => commit)).size).toBeLessThan(found.length / 2)
    const recorded = await Promise.all(anchors.map((id) => entries(method, id)))
    expect(recorded).toEqual(
      owners.map(({ actor_id }) => [1, 2].map(() => ({ outcome: 'success', actor_id }))),
    )
  })

  it('one that may not link its cells, or is second, does not affect its neighbours', async () => {
    const [own, foreign, hidden] = await Promise.all([made(ada), made(bob), made(bob)])
    const answers = await Promise.all([
      call(method, ada, input(own, 'a', far)),
      call(method, ada, input(own, 'a', far)),
      call(method, bob, input(own, 'b', far)),
      call(method, ada, input(foreign, 'a', far)),
      call(method, ada, input(own, 'c', hidden)),
      call(method, ada, input(own, 'd', missing)),
      call(method, bob, input(foreign, 'a', hidden)),
    ])
    const [first, second, ...others] = answers
    expect([first, second].sort()).toEqual([again, 'ok'].sort())
    expect(others).toEqual([...Array.from({ length: 4 }, () => 'cell_not_found'), 'ok'])
    expect((await stored([own, foreign])).map(({ anchor_id, key }) => [anchor_id, key])).toEqual(
      [
        [own, 'a'],
        [foreign, 'a'],
      ].sort(),
    )
    expect(await entries(method, own)).toEqual([{ outcome: 'success', actor_id: ada.actor_id }])
    expect(await entries(method, foreign)).toEqual([{ outcome: 'success', actor_id: bob.actor_id }])
  })
})

it('cell_delete: each is recorded as it is alone, and one cell is deleted once', async () => {
  const own = await Promise.all(Array.from({ length: 20 }, () => made(ada)))
  const [foreign, twice] = await Promise.all([made(bob), made(bob)])
  const answers = await Promise.all([
    ...own.map((cell_id) => call('cell_delete', ada, { cell_id })),
    call('cell_delete', ada, { cell_id: foreign }),
    call('cell_delete', ada, { cell_id: missing }),
    ...[1, 2].map(() => call('cell_delete', bob, { cell_id: twice })),
  ])
  expect(answers.slice(0, 22)).toEqual([...own.map(() => 'ok'), 'cell_not_found', 'cell_not_found'])
  expect(answers.slice(22).sort()).toEqual(['cell_not_found', 'ok'])
  const gone = await db.rows<{ id: string; commit: string }>(sql`
    select id, xmin::text as commit from cell
    where id = any(${[...own, foreign, twice]}::uuid[]) and deleted_at is not null`)
  expect(gone.map(({ id }) => id).sort()).toEqual([...own, twice].sort())
  expect(new Set(gone.map(({ commit }) => commit)).size).toBeLessThan(10)
  const recorded = await Promise.all([...own, twice, foreign].map((id) => entries('cell_delete', id)))
  expect(recorded).toEqual([
    ...own.map(() => [{ outcome: 'success', actor_id: ada.actor_id }]),
    [{ outcome: 'success', actor_id: bob.actor_id }],
    [],
  ])
})

describe('a right or an edge that changes when the statement has begun but not yet locked the cell', async () => {
  const other = await rival(test.databaseUrl)
  afterAll(() => other.close())
  // A trigger fires before the statement looks at any cell. It holds up only the writes of these methods, and by
  // polling, because they would not wait long for a lock.
  await other.query(`
    create function await_rival() returns trigger language plpgsql as $$ begin
      while (tg_table_name = 'cell_grant' or current_query() !~ 'version = c.version from') and not pg_try_advisory_xact_lock_shared(1) loop
        perform pg_sleep(0.005);
      end loop;
      return null;
    end $$`)
  for (const [table, event] of [
    ['cell', 'update'],
    ['cell_field', 'insert'],
    ['cell_field', 'delete'],
    ['cell_item', 'insert'],
    ['cell_item', 'update'],
    ['cell_item', 'delete'],
  ])
    await other.query(
      `create trigger await_rival_to_${event} before ${event} on ${table} for each statement execute function await_rival()`,
    )
  const waiting = () =>
    db.rows(sql`select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
  const principal = { actor_id: bob.actor_id }

  it.each<[Method, (cell_id: string) => object]>([
    ['cell_field_set', (source_id) => ({ source_id, name: 'a', target_id: far })],
    ['cell_field_delete', (source_id) => ({ source_id, name: 'held' })],
    ['cell_item_insert', (parent_id) => ({ parent_id, position: 'a', child_id: far })],
    ['cell_item_move', (parent_id) => ({ parent_id, position: 'held', new_position: 'a' })],
    ['cell_item_delete', (parent_id) => ({ parent_id, position: 'held' })],
    ['cell_delete', (cell_id) => ({ cell_id })],
    ['cell_update', (cell_id) => ({ cell_id, data: { late: 1 } })],
  ])('a right that ends no longer counts: %s', async (method, input) => {
    for (const end of ['cell_grant_revoke', 'cell_grant_create']) {
      const cell_id = await made(ada)
      await fieldRow(test, cell_id, 'held', far)
      await itemRow(test, cell_id, 'held', far)
      const { id: grant_id } = await test.cellGrant(cell_id, 'editor', principal)
      await other.begin('select pg_advisory_xact_lock(1)')
      const late = call(method, bob, input(cell_id))
      await expect.poll(waiting).toHaveLength(1)
      if (end === 'cell_grant_revoke') await ada.client.cell_grant_revoke({ grant_id })
      else await ada.client.cell_grant_create({ cell_id, level: 'viewer', principal })
      await other.commit()
      expect(await late).toBe('cell_not_found')
      expect(await entries(method, cell_id)).toEqual([])
    }
  })

  it.each([
    [
      'what is moved has become another cell, which the caller may not view',
      `update cell_item set child_id = $2 where parent_id = $1 and position = 'held'`,
      'cell_not_found',
    ],
    [
      'the new position is taken',
      `insert into cell_item (parent_id, position, child_id) values ($1, 'a', $2)`,
      'cell_item_position_taken',
    ],
  ])('%s: nothing is moved', async (_what, change, reason) => {
    const [parent_id, hidden] = [await made(bob), await made(ada)]
    await itemRow(test, parent_id, 'held', far)
    await other.begin('select pg_advisory_xact_lock(1)')
    const late = call('cell_item_move', bob, { parent_id, position: 'held', new_position: 'a' })
    await expect.poll(waiting).toHaveLength(1)
    await other.query(change, [parent_id, hidden])
    await other.commit()
    expect(await late).toBe(reason)
    const rows = await db.rows(sql`select position from cell_item where parent_id = ${parent_id}`)
    expect(rows).toContainEqual({ position: 'held' })
    expect(await entries('cell_item_move', parent_id)).toEqual([])
  })

  it('a lowered right ends for calls that have checked it, even if the lowering call has not seen the grant', async () => {
    const cell_id = await made(ada)
    const written = () => db.one<{ ctid: string }>(sql`select ctid::text from cell where id = ${cell_id}`)
    const before = await written()
    await other.query(
      'create trigger await_rival before insert on cell_grant for each statement execute function await_rival()',
    )
    await other.begin('select pg_advisory_xact_lock(1)')
    const late = call('cell_grant_create', ada, { cell_id, level: 'viewer', principal })
    await expect.poll(waiting).toHaveLength(1)
    await other.query(
      `insert into cell_grant (cell_id, level, actor_id, cell_created_at)
       select id, 'editor', $2, created_at from cell where id = $1`,
      [cell_id, bob.actor_id],
    )
    await other.commit()
    expect(await late).toBe('ok')
    expect((await ada.client.cell_grant_list({ cell_id })).grants).toMatchObject([{ level: 'viewer' }])
    expect(await written()).not.toEqual(before)
  })
})

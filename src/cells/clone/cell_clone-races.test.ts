import { afterEach, describe, expect, test as it } from 'vitest'
import { graph, seen } from '../../../test/helpers/cell-graphs.ts'
import { cellRow, endCellGrant, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { rival } from '../../../test/helpers/race.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

/** Runs inside the call, between the walk and the copy, if the root requests it. */
let meanwhile: () => Promise<unknown> = async () => {}

const test = await serviceForFile({
  hooks: {
    async validateData(_kind: string | null, data: Record<string, unknown>) {
      if (data.name === 'a') await meanwhile()
      return data
    },
  },
})
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])
afterEach(() => {
  meanwhile = async () => {}
})

const clone = (source_id: string | undefined, deep = true, by = ada) =>
  by.client.cell_clone({ source_id: source_id as string, deep })
const tree = () =>
  graph(
    test,
    bob.actor_id,
    ['a #1 b', 'a field c', 'b #1 c'],
    Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { visibility: 'public' as const }])),
  )

describe('a clone is one snapshot, whatever changes while it runs', () => {
  it('data, edges, new children, deletion and visibility of what it copies', async () => {
    for (const deep of [true, false]) {
      const ids = await tree()
      const [a, b, c] = [ids.a as string, ids.b as string, ids.c as string]
      const before = await seen(root, a)
      let runs = 0
      meanwhile = async () => {
        runs++
        await bob.client.cell_update({ cell_id: b, data: { name: 'late' } })
        await bob.client.cell_update({ cell_id: a, data: { name: 'late' } })
        await test.service.app.db.run(sql`delete from cell_item where parent_id = ${a}::uuid`)
        await fieldRow(test, a, 'late', b)
        await itemRow(test, b, '9', await cellRow(test, { visibility: 'public', data: { name: 'late' } }))
        await bob.client.cell_update({ cell_id: c, visibility: 'private' })
        await bob.client.cell_delete({ cell_id: a })
      }
      const { cell, cloned_count } = await clone(a, deep)
      expect([runs, cloned_count, cell.data]).toEqual([1, deep ? 3 : 1, { name: 'a' }])
      if (deep) expect(await seen(root, cell.id)).toEqual(before)
      else
        expect(await seen(root, cell.id)).toEqual(
          expect.arrayContaining(['a #1 late', 'a field c', 'late #1 c']),
        )
    }
  })

  it('the right to view, as of that snapshot', async () => {
    const ids = await graph(test, bob.actor_id, ['a #1 b'])
    for (const id of Object.values(ids)) await test.cellGrant(id, 'viewer', { actor_id: ada.actor_id })
    meanwhile = () => endCellGrant(test, ids.b as string, ada.actor_id)
    expect((await clone(ids.a)).cloned_count).toBe(2)
    expect((await clone(ids.a)).cloned_count).toBe(1)
  })
})

it('if a role expires while it runs, cells that only this role admits to are left out', async () => {
  const ids = await graph(
    test,
    bob.actor_id,
    ['a #1 b', 'b #1 c', 'a #2 d'],
    Object.fromEntries(['a', 'c', 'd'].map((name) => [name, { visibility: 'public' as const }])),
  )
  await test.cellGrant(ids.b as string, 'viewer', { role: 'guest', scope_id: null })
  const guest = await test.account()
  const { db } = test.service.app
  await test.roleGrant({
    actor_id: guest.actor_id,
    role: 'guest',
    expires_at: new Date(Date.now() + 1000).toISOString(),
  })
  meanwhile = async () => {
    const active = sql`select from role_grant where role = 'guest' and expires_at > clock_timestamp()`
    await expect.poll(async () => (await db.rows(active)).length).toBe(0)
  }
  const { cell, cloned_count } = await clone(ids.a, true, guest)
  expect(cloned_count).toBe(2)
  expect(await seen(root, cell.id)).toEqual(['a #2 d'])
})

describe('the purge of the caller while it runs', () => {
  it('before the copy: account_vanished, nothing written', async () => {
    const ids = await tree()
    const leaving = await test.account()
    const other = await rival(test.databaseUrl)
    await other.begin('delete from actor where id = $1', [leaving.actor_id])
    const call = scenario(test, () => clone(ids.a, true, leaving), { reason: 'account_vanished' })
    await Promise.all([call, other.blocks(1).then(other.commit)])
    await other.close()
  })

  it('during the copy: the clone is refused or becomes a system cell', async () => {
    const ids = await tree()
    for (let round = 0; round < 10; round++) {
      const leaving = await test.account()
      const [outcome] = await Promise.all([
        reasonOf(clone(ids.a, true, leaving)),
        test.service.operations.purgeAccount({ account_id: leaving.id, confirm: true }, { via: 'test' }),
      ])
      expect(['ok', 'account_vanished', 'authentication_required']).toContain(outcome)
      const left = sql`select from cell where created_by = ${leaving.actor_id}`
      expect(await test.service.app.db.rows(left)).toEqual([])
    }
  })
})

it('writes that are counted for the same account meanwhile don’t make it run again', async () => {
  const ids = await tree()
  let runs = 0
  meanwhile = async () => {
    runs++
    await test.service.app.db.run(sql`
      insert into cell_usage (account_id, shard, cells, bytes)
      select ${ada.id}::uuid, shard, 0, 0 from generate_series(1, 65) shard
      on conflict (account_id, shard) do update set cells = cell_usage.cells`)
  }
  expect((await clone(ids.a)).cloned_count).toBe(3)
  expect(runs).toBe(1)
})

it('many clones during changes of their source all succeed, each consistent', async () => {
  const ids = await tree()
  const writer = async () => {
    for (let n = 0; n < 20; n++)
      for (const name of ['a', 'b'])
        await bob.client.cell_update({ cell_id: ids[name] as string, data: { name, n } })
  }
  const clones = async () => {
    const made: string[] = []
    for (let n = 0; n < 10; n++) made.push((await clone(ids.a)).cell.id)
    return made
  }
  const [, ...made] = await Promise.all([writer(), clones(), clones()])
  for (const id of made.flat()) {
    const { cell, items } = await ada.client.cell_get({ id })
    const { cell: child } = await ada.client.cell_get({ id: items[0]?.child_id as string })
    // The writer changes `a` first, so `b` was never ahead.
    const [a, b] = [Number(cell.data.n ?? -1), Number(child.data.n ?? -1)]
    expect([a, a - 1]).toContain(b)
  }
})

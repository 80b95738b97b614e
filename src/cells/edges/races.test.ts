import { afterAll, beforeEach, describe, expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf, tally } from '../../../test/helpers/outcome.ts'
import { rival } from '../../../test/helpers/race.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

let parent: string
let child: string
const test = await serviceForFile()
const [ada, editor, _root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])
const other = await rival(test.databaseUrl)
afterAll(() => other.close())
beforeEach(async () => {
  parent = await cellRow(test, { created_by: ada.actor_id })
  child = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
  await test.cellGrant(parent, 'editor', { actor_id: editor.actor_id })
})

const insert = (position: string, who = ada, child_id = child) =>
  who.client.cell_item_insert({ parent_id: parent, child_id, position })
const move = (position: string, new_position: string, who = ada) =>
  who.client.cell_item_move({ parent_id: parent, position, new_position })
const remove = (position: string, who = ada) => who.client.cell_item_delete({ parent_id: parent, position })
const set = (name: string, target_id: string, who = ada) =>
  who.client.cell_field_set({ source_id: parent, name, target_id })
const unset = (name: string, who = ada) => who.client.cell_field_delete({ source_id: parent, name })
/** Every write of an edge, on an existing item at `a` and an existing field `a`. */
const writes = (who: TestAccount): Promise<unknown>[] => [
  set('b', child, who),
  set('a', parent, who),
  unset('a', who),
  insert('b', who),
  move('a', 'c', who),
  remove('a', who),
]
const plant = async () => {
  await itemRow(test, parent, 'a', child)
  await fieldRow(test, parent, 'a', child)
}
const edges = () =>
  test.service.app.db.rows<{ key: string; far: string }>(sql`
    select position as key, child_id as far from cell_item where parent_id = ${parent}
    union all select name, target_id from cell_field where source_id = ${parent} order by 1`)
const counted = (event_type: string) =>
  test.service.app.db
    .rows(sql`
      select from audit_entries() where event_type = ${event_type} and outcome = 'success' and ${parent} in
        (metadata ->> 'parent_id', metadata ->> 'source_id')`)
    .then((rows) => rows.length)

describe('at one position', () => {
  it('of twenty inserts over an item with a deleted child one succeeds', async () => {
    const gone = await cellRow(test, { deleted_at: '2026-01-01T00:00:00Z' })
    await itemRow(test, parent, 'p', gone)
    expect(await tally(Array.from({ length: 20 }, () => insert('p')))).toEqual({
      ok: 1,
      cell_item_position_taken: 19,
    })
    expect(await edges()).toEqual([{ key: 'p', far: child }])
  })

  it('of ten moves of one item to different places one succeeds', async () => {
    await plant()
    const calls = Array.from({ length: 10 }, (_, n) => move('a', `m${n}`))
    expect(await tally(calls)).toEqual({ ok: 1, cell_not_found: 9 })
    expect(await edges()).toHaveLength(2)
  })

  it('of ten deletions one finds the item and leaves an audit row', async () => {
    await plant()
    const answers = await Promise.all(Array.from({ length: 10 }, () => remove('a')))
    expect(answers.filter(({ deleted }) => deleted)).toHaveLength(1)
    expect(await counted('cell_item_delete')).toBe(1)
  })

  it('an insert that waits for another finds the position taken, or free if that one rolls back', async () => {
    for (const end of ['commit', 'rollback']) {
      const position = end
      await other.begin('insert into cell_item (parent_id, position, child_id) values ($1, $2, $3)', [
        parent,
        position,
        child,
      ])
      const late = reasonOf(insert(position))
      await other.blocks(1)
      await other.query(end)
      expect(await late).toBe(end === 'commit' ? 'cell_item_position_taken' : 'ok')
    }
  })
})

describe('at different keys of one cell no write waits for another transaction', () => {
  it('inserts, sets and deletions proceed while one of each is open; a move waits', async () => {
    await plant()
    await other.begin('select from cell where id = $1 for share', [parent])
    await other.query('insert into cell_item (parent_id, position, child_id) values ($1, $2, $3)', [
      parent,
      'open',
      child,
    ])
    await other.query('insert into cell_field (source_id, name, target_id) values ($1, $2, $3)', [
      parent,
      'open',
      child,
    ])
    const free = [...Array.from({ length: 20 }, (_, n) => insert(`p${n}`)), set('b', child), unset('a')]
    expect(await tally(free)).toEqual({ ok: 22 })
    const moved = reasonOf(move('p0', 'q0'))
    await other.blocks(1)
    await other.commit()
    expect(await moved).toBe('ok')
  })

  it('an open write of data blocks edges of that cell, but not edges to it', async () => {
    await other.begin('update cell set version = version + 1 where id = $1', [child])
    expect(await reasonOf(insert('far'))).toBe('ok')
    await other.commit()
    await other.begin('update cell set version = version + 1 where id = $1', [parent])
    const near = reasonOf(insert('near'))
    await other.blocks(1)
    await other.commit()
    expect(await near).toBe('ok')
  })
})

it('a caller that may not edit the cell neither waits for its writers nor holds them up', async () => {
  await plant()
  await test.service.app.db.run(sql`update cell set visibility = 'public' where id = ${parent}`)
  const stranger = await test.account()
  await other.begin('select from cell where id = $1 for update', [parent])
  expect(await tally(writes(stranger))).toEqual({ cell_not_found: 6 })
  await other.commit()
})

describe('one field', () => {
  it('set by twenty to different cells: all succeed, the last one stays, each leaves an audit row', async () => {
    const far = await Promise.all(Array.from({ length: 20 }, () => cellRow(test, { visibility: 'public' })))
    expect(await tally(far.map((id) => set('f', id)))).toEqual({ ok: 20 })
    expect(await counted('cell_field_set')).toBe(20)
    const last = await test.service.app.db.first<{ target_id: string }>(sql`
      select metadata ->> 'target_id' as target_id from audit_entries() where event_type = 'cell_field_set' order by written desc limit 1`)
    expect(await edges()).toEqual([{ key: 'f', far: last?.target_id }])
  })

  it('set by twenty to one cell: all return the same field, which was written once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => set('f', child)))
    expect(new Set(answers.map(({ field }) => JSON.stringify(field))).size).toBe(1)
    expect(await counted('cell_field_set')).toBe(1)
  })

  it('deleted while it is set to another cell: it existed all the time, so the new field is removed', async () => {
    await plant()
    await other.begin('update cell_field set target_id = $1 where source_id = $1', [parent])
    const late = scenario(test, () => unset('a'), {
      audit: [
        {
          event_type: 'cell_field_delete',
          metadata: { source_id: parent, name: 'a', target_id: parent },
        },
      ],
    })
    await other.blocks(1)
    await other.commit()
    expect(await late).toEqual({ ok: true, deleted: true })
  })
})

describe('the end of the right to a write', () => {
  it('comes after a write that already holds the lock of the cell: the write is kept', async () => {
    await other.begin('insert into cell_item (parent_id, position, child_id) values ($1, $2, $3)', [
      parent,
      'held',
      child,
    ])
    // This insert locks the parent, and waits for the position.
    const early = reasonOf(insert('held', editor))
    await other.blocks(1)
    const deletion = reasonOf(ada.client.cell_delete({ cell_id: parent }))
    await other.blocks(2)
    await other.query('rollback')
    expect([await early, await deletion]).toEqual(['ok', 'ok'])
    expect(await edges()).toEqual([{ key: 'held', far: child }])
  })
})

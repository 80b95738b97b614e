import assert from 'node:assert/strict'
import { sql } from '../../src/db/db.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { cellRow, fieldRow, itemRow } from './cell-rows.ts'
import { admin, call, only, type Race, race, rows } from './race-tools.ts'

/** An owner, an editor of its cell, and that cell at version 1. */
type Shared = { ada: TestAccount; editor: TestAccount; cell_id: string; grant_id: string }

async function shared(world: TestService): Promise<Shared> {
  const [ada, editor] = await Promise.all([world.account(), world.account()])
  const cell_id = await cellRow(world, { created_by: ada.actor_id })
  const { id } = await world.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
  return { ada, editor, cell_id, grant_id: id }
}

type Stored = { version: number; data: Record<string, unknown>; visibility: string; edges: number }
const stored = async (world: TestService, id: string): Promise<Stored> =>
  (
    await rows<Stored>(
      world,
      sql`select version, data, visibility,
        (select count(*)::int from cell_field where source_id = c.id)
          + (select count(*)::int from cell_item where parent_id = c.id) as edges
        from cell c where id = ${id}::uuid`,
    )
  )[0] as Stored

const update = (world: TestService, by: TestAccount, cell_id: string, input: object) =>
  call(world, by, 'cell_update', { cell_id, ...input })

/** A right ends while a write uses it: after the reply to the end, nothing may change. */
async function ending(
  world: TestService,
  { cell_id, ada, editor }: Shared,
  [end, params]: [method: string, params: object],
  write: (nth: number) => [method: string, input: object],
): Promise<string> {
  let answered: Stored | undefined
  const outcomes = await race([
    async () => {
      await call(world, ada, end, params)()
      answered = await stored(world, cell_id)
    },
    ...[1, 2].map((nth) => call(world, editor, ...write(nth))),
  ])
  assert.equal(outcomes[0], 'ok')
  only(outcomes, ['ok', 'cell_not_found', 'cell_item_position_taken'])
  const last = await stored(world, cell_id)
  assert.deepEqual(last, answered, 'nothing changes after the answer')
  // The ending call succeeds too; it counts as the initial version of the cell.
  if (last.edges === 0) assert.equal(last.version, outcomes.filter((one) => one === 'ok').length)
  return outcomes.join(' / ')
}

const ends = {
  'its grant is revoked': ({ grant_id }: Shared): [string, object] => ['cell_grant_revoke', { grant_id }],
  'it becomes a viewer': ({ cell_id, editor }: Shared): [string, object] => [
    'cell_grant_create',
    { cell_id, level: 'viewer', principal: { actor_id: editor.actor_id } },
  ],
  'the cell is deleted': ({ cell_id }: Shared): [string, object] => ['cell_delete', { cell_id }],
}
const writes = {
  updates: ({ cell_id }: Shared, nth: number): [string, object] => [
    'cell_update',
    { cell_id, data: { nth } },
  ],
  'sets a field': ({ cell_id }: Shared): [string, object] => [
    'cell_field_set',
    { source_id: cell_id, name: 'self', target_id: cell_id },
  ],
  'inserts an item': ({ cell_id }: Shared): [string, object] => [
    'cell_item_insert',
    { parent_id: cell_id, position: 'a', child_id: cell_id },
  ],
}

const rightsThatEnd: Record<string, Race> = Object.fromEntries(
  Object.entries(ends).flatMap(([what, end]) =>
    Object.entries(writes).map(([does, write]): [string, Race] => [
      `an editor ${does} while ${what}`,
      async (world) => {
        const cast = await shared(world)
        return await ending(world, cast, end(cast), (nth) => write(cast, nth))
      },
    ]),
  ),
)

/** Races of writes to cells. */
export const cellRaces: Record<string, Race> = {
  ...rightsThatEnd,

  'two updates expect one version': async (world) => {
    const { ada, editor, cell_id } = await shared(world)
    const outcomes = await race(
      [ada, editor].map((by, n) => update(world, by, cell_id, { data: { n }, expected_version: 1 })),
    )
    assert.deepEqual([...outcomes].sort(), ['cell_version_conflict', 'ok'])
    const { version, data } = await stored(world, cell_id)
    assert.deepEqual({ version, data }, { version: 2, data: { n: outcomes.indexOf('ok') } })
    return outcomes.join(' / ')
  },

  'ten updates expect nothing': async (world) => {
    const { ada, editor, cell_id } = await shared(world)
    const updates = Array.from({ length: 10 }, (_, n) =>
      update(world, n % 2 ? ada : editor, cell_id, { data: { [`k${n}`]: n } }),
    )
    only(await race(updates), ['ok'])
    const { version, data } = await stored(world, cell_id)
    assert.equal(version, 11)
    assert.equal(Object.keys(data).length, 1, 'the last one wins entirely')
    return `the last is ${Object.keys(data)}`
  },

  'ten patches of one cell': async (world) => {
    const { ada, editor, cell_id } = await shared(world)
    const keys = Array.from({ length: 10 }, (_, n) => `k${n}`)
    const outcomes = await race(
      keys.map((key, n) => update(world, n % 2 ? ada : editor, cell_id, { data_patch: { [key]: n } })),
    )
    only(outcomes, ['ok'])
    const { version, data } = await stored(world, cell_id)
    assert.equal(version, 11)
    assert.deepEqual(Object.keys(data).sort(), keys)
    return 'all merged'
  },

  'twenty inserts at one position': async (world) => {
    const { ada, editor, cell_id } = await shared(world)
    const insert = { parent_id: cell_id, position: 'p', child_id: cell_id }
    const outcomes = await race(
      Array.from({ length: 20 }, (_, n) => call(world, n % 2 ? ada : editor, 'cell_item_insert', insert)),
    )
    only(outcomes, ['ok', 'cell_item_position_taken'])
    assert.equal(outcomes.filter((one) => one === 'ok').length, 1)
    assert.equal((await stored(world, cell_id)).edges, 1)
    const inserts = await rows(
      world,
      sql`select from audit_entries() where event_type = 'cell_item_insert' and metadata ->> 'parent_id' = ${cell_id}`,
    )
    assert.equal(inserts.length, 1)
    return `writer ${outcomes.indexOf('ok') % 2}`
  },

  'two moves swap their slots': async (world) => {
    const { ada, editor, cell_id } = await shared(world)
    for (const position of ['a', 'b']) await itemRow(world, cell_id, position, cell_id)
    const move = (by: TestAccount, position: string, new_position: string) =>
      call(world, by, 'cell_item_move', { parent_id: cell_id, position, new_position })
    const outcomes = await race([move(ada, 'a', 'b'), move(editor, 'b', 'a')])
    assert.deepEqual(outcomes, ['cell_item_position_taken', 'cell_item_position_taken'])
    assert.equal((await stored(world, cell_id)).edges, 2)
    return 'both refused'
  },

  'moves and inserts at one position': async (world) => {
    const { ada, editor, cell_id } = await shared(world)
    for (const position of ['a', 'b']) await itemRow(world, cell_id, position, cell_id)
    const outcomes = await race([
      ...['a', 'b'].map((position) =>
        call(world, editor, 'cell_item_move', { parent_id: cell_id, position, new_position: 'z' }),
      ),
      call(world, ada, 'cell_item_insert', { parent_id: cell_id, position: 'z', child_id: cell_id }),
    ])
    only(outcomes, ['ok', 'cell_item_position_taken'])
    assert.equal(outcomes.filter((one) => one === 'ok').length, 1)
    assert.equal((await stored(world, cell_id)).edges, outcomes[2] === 'ok' ? 3 : 2)
    return outcomes.join(' / ')
  },

  'two set one field': async (world) => {
    const { ada, editor, cell_id } = await shared(world)
    const targets = [await cellRow(world, { visibility: 'public' }), cell_id]
    const outcomes = await race(
      [ada, editor].map((by, n) =>
        call(world, by, 'cell_field_set', { source_id: cell_id, name: 'f', target_id: targets[n] }),
      ),
    )
    only(outcomes, ['ok'])
    const fields = await rows<{ target_id: string }>(
      world,
      sql`select target_id from cell_field where source_id = ${cell_id}::uuid`,
    )
    assert.equal(fields.length, 1)
    const events = await rows(
      world,
      sql`select from audit_entries() where event_type = 'cell_field_set' and metadata ->> 'source_id' = ${cell_id}`,
    )
    assert.equal(events.length, 2)
    return `the last is ${targets.indexOf(fields[0]?.target_id as string)}`
  },

  'two grants to one actor': async (world) => {
    const { ada, cell_id } = await shared(world)
    const { actor_id } = await world.account()
    const grant = (level: string) =>
      call(world, ada, 'cell_grant_create', { cell_id, level, principal: { actor_id } })
    only(await race([grant('viewer'), grant('editor')]), ['ok'])
    const levels = await rows<{ level: string }>(
      world,
      sql`select level from cell_grant where cell_id = ${cell_id}::uuid and actor_id = ${actor_id}::uuid`,
    )
    assert.equal(levels.length, 1)
    return `the last is ${levels[0]?.level}`
  },

  'a cell is given a path while it is shared': async (world) => {
    const root = await admin(world)
    const { ada, cell_id } = await shared(world)
    const others = await Promise.all([world.account(), world.account()])
    const outcomes = await race([
      update(world, root, cell_id, { path: 'given/to' }),
      ...others.map(({ actor_id }) =>
        call(world, ada, 'cell_grant_create', { cell_id, level: 'viewer', principal: { actor_id } }),
      ),
    ])
    only(outcomes, ['ok'])
    const copies = await rows<{ cell_path: string | null }>(
      world,
      sql`select cell_path from cell_grant where cell_id = ${cell_id}::uuid`,
    )
    assert.deepEqual(
      copies.map(({ cell_path }) => cell_path),
      ['given/to', 'given/to', 'given/to'],
    )
    return outcomes.join(' / ')
  },

  'two cells want one path': async (world) => {
    const ada = await admin(world)
    const { cell_id } = await shared(world)
    const outcomes = await race([
      call(world, ada, 'cell_create', { path: 'wanted', data: {} }),
      update(world, ada, cell_id, { path: 'wanted' }),
    ])
    assert.deepEqual([...outcomes].sort(), ['cell_path_taken', 'ok'])
    return outcomes.join(' / ')
  },

  'two cells swap their paths': async (world) => {
    const root = await admin(world)
    const [a, b] = [await cellRow(world, { path: 'a' }), await cellRow(world, { path: 'b' })]
    const outcomes = await race([
      update(world, root, a, { path: 'b' }),
      update(world, root, b, { path: 'a' }),
    ])
    assert.deepEqual(outcomes, ['cell_path_taken', 'cell_path_taken'])
    return 'both refused'
  },

  'a deep clone while a cell of it is deleted': async (world) => {
    const { ada, cell_id } = await shared(world)
    const child = await cellRow(world, { created_by: ada.actor_id })
    const below = await cellRow(world, { created_by: ada.actor_id })
    await fieldRow(world, cell_id, 'child', child)
    await itemRow(world, child, 'a', below)
    const before = await rows(world, sql`select from cell`)
    const outcomes = await race([
      call(world, ada, 'cell_clone', { source_id: cell_id, deep: true }),
      call(world, ada, 'cell_delete', { cell_id: child }),
    ])
    only(outcomes, ['ok'])
    // The whole tree as it was, or the root alone: never the child without its descendants.
    const made = (await rows(world, sql`select from cell`)).length - before.length
    assert.ok(made === 3 || made === 1, `${made} cells were made`)
    const edges = await rows(
      world,
      sql`select from cell_field where source_id <> ${cell_id}::uuid
        union all select from cell_item where parent_id <> ${child}::uuid`,
    )
    assert.equal(edges.length, made - 1)
    return `${made} copied`
  },
}

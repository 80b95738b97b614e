import { expect, test as it } from 'vitest'
import {
  accessTable,
  allowed,
  as,
  type Caller,
  compare,
  type Target,
  write,
} from '../../test/helpers/access-table.ts'
import { cellRow, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

/**
 * Every kind of caller against every kind of cell, in every method, as the cell itself and as the far end of an edge.
 */

const test = await serviceForFile(
  Object.fromEntries(['create', 'write', 'clone', 'read'].map((what) => [`limit_cell_${what}`, 'off'])),
)
const { db } = test.service.app
const table = await accessTable(test)
const { callers, targets } = table
const admin = callers.get('admin')
/** An actor without any other access, to give grants to. */
const guest = await test.account()
/** A public cell with edges to and from every cell of the table. */
const hub = await cellRow(test, { visibility: 'public' })
/** A cell that each caller may edit. */
const mine = new Map<Caller, string>()
for (const caller of callers.values())
  mine.set(caller, await cellRow(test, { created_by: caller.actor_id, kind: 'mine' }))
for (const [i, { id }] of [...targets.values()].entries()) {
  await fieldRow(test, hub, `f${i}`, id)
  await itemRow(test, hub, `${i}`, id)
  await fieldRow(test, id, 'hub', hub)
  await itemRow(test, id, 'hub', hub)
}

let made = 0
/** An unused name or position. */
const fresh = () => `k${++made}`
const own = (caller: Caller) => mine.get(caller) as string
const copyOf = ({ created_by, visibility, is_deleted }: Target) =>
  cellRow(test, {
    created_by,
    visibility: visibility as 'public',
    deleted_at: is_deleted ? '2026-01-01T00:00:00Z' : null,
  })
const grantTo = async (cell_id: string, to: { actor_id?: string; role?: string }) =>
  (
    await db.one<{ id: string }>(sql`
      insert into cell_grant (cell_id, level, actor_id, role, cell_created_at)
      select id, 'viewer', ${to.actor_id ?? null}::uuid, ${to.role ?? null}, created_at
      from cell where id = ${cell_id} returning id`)
  ).id

type Check = (caller: Caller, cell: Target) => Promise<unknown>
type Rule = Parameters<typeof compare>[2]
/** The outcome of a call. */
const send =
  (method: `cell_${string}`, input: (cell: Target, caller: Caller) => object): Check =>
  (caller, cell) => {
    const calls = caller.client as unknown as Record<string, (input: object) => Promise<unknown>>
    return reasonOf(calls[method]?.({ ...input(cell, caller), ...as(caller) }) as Promise<unknown>)
  }
/** The outcome of a call, after which `undo` restores the rows. */
const undone =
  (check: Check, undo: (cell: Target) => ReturnType<typeof sql>): Check =>
  async (caller, cell) => {
    const reason = await check(caller, cell)
    await db.run(undo(cell))
    return reason
  }
const views: Rule = ({ view }, caller) => write(view, caller)
const edits: Rule = ({ edit }, caller) => write(edit, caller)
const manages: Rule = ({ manage }, caller) => write(manage, caller)

it('the table has every combination of tiers, so that a rule too strict or too lax fails', () => {
  const tiers = [...callers.values()].flatMap((caller) =>
    [...targets.values()].map((cell) => Object.values(allowed(caller, cell)).join()),
  )
  expect([...new Set(tiers)].sort()).toEqual(
    ['false,false,false', 'true,false,false', 'true,true,false', 'true,true,true'].sort(),
  )
})

const lists = new Map<Caller, Promise<{ cells: { id: string }[] }>>()
for (const caller of callers.values())
  lists.set(caller, caller.client.cell_list({ limit: 200, ...as(caller) }))
const leadTo = (edges: object[], id: string) => edges.some((edge) => Object.values(edge).includes(id))

const reads: [string, Check, Rule][] = [
  [
    'cell_get, with what the caller may do',
    async (caller, { id }) => {
      const outcome = await caller.client.try.cell_get({ id, ...as(caller) })
      return outcome.ok ? [outcome.result.can_edit, outcome.result.can_grant] : outcome.error.reason
    },
    ({ view, edit, manage }) => (view ? [edit, manage] : 'cell_not_found'),
  ],
  [
    'cell_list, with ids and without',
    async (caller, { id }) => {
      const { cells } = await caller.client.cell_list({ ids: [id], ...as(caller) })
      return [cells.length === 1, (await lists.get(caller))?.cells.some((cell) => cell.id === id)]
    },
    ({ view }) => [view, view],
  ],
  [
    'cell_get of a cell with edges to it',
    async (caller, { id }) => {
      const { fields, items } = await caller.client.cell_get({ id: hub, ...as(caller) })
      return [leadTo(fields, id), leadTo(items, id)]
    },
    ({ view }) => [view, view],
  ],
  [
    'the four lists of edges of a cell with edges to and from it',
    async (caller, { id }) => {
      if (caller.actor_id === null) return 'authentication_required'
      const { client } = caller
      const [forth, back, items, places] = await Promise.all([
        client.cell_field_list({ source_id: hub, ...as(caller) }),
        client.cell_field_list({ target_id: hub, ...as(caller) }),
        client.cell_item_list({ parent_id: hub, ...as(caller) }),
        client.cell_item_list({ child_id: hub, ...as(caller) }),
      ])
      return [forth.fields, back.fields, items.items, places.items].map((edges) => leadTo(edges, id))
    },
    ({ view }, { actor_id }) => (actor_id === null ? 'authentication_required' : Array(4).fill(view)),
  ],
  ['cell_field_list from it', send('cell_field_list', ({ id }) => ({ source_id: id })), views],
  ['cell_field_list to it', send('cell_field_list', ({ id }) => ({ target_id: id })), views],
  ['cell_item_list of it', send('cell_item_list', ({ id }) => ({ parent_id: id })), views],
  ['cell_item_list with it', send('cell_item_list', ({ id }) => ({ child_id: id })), views],
  ['cell_grant_list', send('cell_grant_list', ({ id }) => ({ cell_id: id })), manages],
  [
    'cell_audit_list, where a deleted cell is for admins',
    send('cell_audit_list', ({ id }) => ({ cell_id: id })),
    ({ manage }, caller, { is_deleted }) => write(manage || (is_deleted && caller === admin), caller),
  ],
  ['cell_clone, shallow', send('cell_clone', ({ id }) => ({ source_id: id })), views],
  ['cell_clone, deep', send('cell_clone', ({ id }) => ({ source_id: id, deep: true })), views],
]

/** The outcome of deleting an edge of the cell, and how many edges with its key are left. */
const removes =
  (method: 'cell_field_delete' | 'cell_item_delete', isThere: boolean): Check =>
  async (caller, cell) => {
    const key = fresh()
    const isField = method === 'cell_field_delete'
    if (isThere) await (isField ? fieldRow : itemRow)(test, cell.id, key, hub)
    const ends = isField ? { source_id: cell.id, name: key } : { parent_id: cell.id, position: key }
    const reason = await send(method, () => ends)(caller, cell)
    const left = await db.rows(sql`
      select from cell_field where name = ${key} union all select from cell_item where position = ${key}`)
    return [reason, left.length]
  }
const moves =
  (from: (cell: Target, caller: Caller) => string, to: (cell: Target) => string, isSame = false): Check =>
  async (caller, cell) => {
    const [position, parent_id] = [fresh(), from(cell, caller)]
    const new_position = isSame ? position : fresh()
    await itemRow(test, parent_id, position, to(cell))
    const reason = await send('cell_item_move', () => ({ parent_id, position, new_position }))(caller, cell)
    const rows = await db.rows<{ position: string }>(sql`
      select position from cell_item where parent_id = ${parent_id} and position in (${position}, ${new_position})`)
    return [reason, rows.map((row) => row.position === position)]
  }
const removed =
  (isThere: boolean): Rule =>
  ({ edit }, caller) => [write(edit, caller), isThere && !(edit && caller.actor_id !== null) ? 1 : 0]
const moved =
  (tier: 'view' | 'edit', isSame = false): Rule =>
  (may, caller) => [write(may[tier], caller), [isSame || !may[tier] || caller.actor_id === null]]

const writes: [string, Check, Rule][] = [
  ['cell_update that changes nothing', send('cell_update', ({ id }) => ({ cell_id: id })), edits],
  [
    'cell_update of data',
    send('cell_update', ({ id }) => ({ cell_id: id, data_patch: { n: made++ } })),
    edits,
  ],
  [
    'cell_update of visibility',
    undone(
      send('cell_update', ({ id, visibility }) => ({
        cell_id: id,
        visibility: visibility === 'public' ? 'private' : 'public',
      })),
      ({ id, visibility }) => sql`update cell set visibility = ${visibility} where id = ${id}`,
    ),
    ({ edit, manage }, caller) =>
      edit && !manage && caller.actor_id !== null ? 'cell_visibility_manage_only' : write(manage, caller),
  ],
  [
    'cell_update of the path',
    undone(
      send('cell_update', ({ id }) => ({ cell_id: id, path: `to ${id}` })),
      ({ id }) => sql`update cell set path = null where id = ${id}`,
    ),
    ({ edit }, caller) =>
      caller === admin || caller.actor_id === null ? write(edit, caller) : 'cell_path_admin_only',
  ],
  [
    'cell_delete',
    async (caller, target) => {
      const copy = await copyOf(target)
      await db.run(sql`
        insert into cell_grant (cell_id, level, actor_id, role, scope_id, cell_created_at)
        select ${copy}::uuid, level, actor_id, role, scope_id, cell_created_at
        from cell_grant where cell_id = ${target.id}`)
      const reason = await send('cell_delete', () => ({ cell_id: copy }))(caller, target)
      return [reason, (await db.rows(sql`select from cell where id = ${copy} and deleted_at is null`)).length]
    },
    ({ edit }, caller, { is_deleted }) => [
      write(edit, caller),
      is_deleted || (edit && caller.actor_id !== null) ? 0 : 1,
    ],
  ],
  [
    'cell_grant_create',
    undone(
      send('cell_grant_create', ({ id }) => ({
        cell_id: id,
        level: 'viewer',
        principal: { actor_id: guest.actor_id },
      })),
      ({ id }) => sql`delete from cell_grant where cell_id = ${id} and actor_id = ${guest.actor_id}`,
    ),
    manages,
  ],
  [
    'cell_grant_revoke of another actor’s grant',
    async (caller, cell) => {
      const grant_id = await grantTo(cell.id, { role: `for ${caller.actor_id}` })
      return await send('cell_grant_revoke', () => ({ grant_id }))(caller, cell)
    },
    ({ manage }, caller) => write(manage, caller).replace('cell_not_found', 'cell_grant_not_found'),
  ],
  [
    'cell_grant_revoke of the caller’s own grant, and whether it is admitted afterwards',
    async (caller, target) => {
      if (caller.actor_id === null) return 'authentication_required'
      const copy = await copyOf(target)
      const grant_id = await grantTo(copy, { actor_id: caller.actor_id })
      const outcome = await caller.client.try.cell_grant_revoke({ grant_id, ...as(caller) })
      const { view } = allowed(caller, { ...target, id: copy, grants: [] })
      return outcome.ok ? outcome.result.still_admitted === view : target.is_deleted && outcome.error.reason
    },
    (_may, { actor_id }, { is_deleted }) =>
      actor_id === null ? 'authentication_required' : is_deleted ? 'cell_grant_not_found' : true,
  ],
  [
    'cell_field_set from it',
    send('cell_field_set', ({ id }) => ({ source_id: id, name: fresh(), target_id: hub })),
    edits,
  ],
  [
    'cell_field_set from it that changes nothing',
    send('cell_field_set', ({ id }) => ({ source_id: id, name: 'hub', target_id: hub })),
    edits,
  ],
  [
    'cell_item_insert into it',
    send('cell_item_insert', ({ id }) => ({ parent_id: id, child_id: hub, position: fresh() })),
    edits,
  ],
  [
    'cell_item_move in it',
    moves(
      ({ id }) => id,
      () => hub,
    ),
    moved('edit'),
  ],
  [
    'cell_item_move in it, to the same position',
    moves(
      ({ id }) => id,
      () => hub,
      true,
    ),
    moved('edit', true),
  ],
  ['cell_field_delete from it', removes('cell_field_delete', true), removed(true)],
  ['cell_field_delete from it of nothing', removes('cell_field_delete', false), removed(false)],
  ['cell_item_delete from it', removes('cell_item_delete', true), removed(true)],
  ['cell_item_delete from it of nothing', removes('cell_item_delete', false), removed(false)],
  [
    'cell_field_set to it',
    send('cell_field_set', ({ id }, caller) => ({ source_id: own(caller), name: fresh(), target_id: id })),
    views,
  ],
  [
    'cell_item_insert of it',
    send('cell_item_insert', ({ id }, caller) => ({
      parent_id: own(caller),
      child_id: id,
      position: fresh(),
    })),
    views,
  ],
  [
    'cell_item_move of it',
    moves(
      (_cell, caller) => own(caller),
      ({ id }) => id,
    ),
    moved('view'),
  ],
  [
    'cell_field_delete to it: needs no right to view, only that it is live',
    async (caller, { id }) => {
      if (caller.actor_id === null) return false
      const name = fresh()
      const source_id = await cellRow(test, { created_by: caller.actor_id })
      await fieldRow(test, source_id, name, id)
      return (await caller.client.cell_field_delete({ source_id, name, ...as(caller) })).deleted
    },
    (_may, { actor_id }, { is_deleted }) => actor_id !== null && !is_deleted,
  ],
]

it.each([...reads, ...writes])('%s', async (_what, check, rule) => {
  expect(await compare(table, check, rule)).toEqual([])
})

import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import {
  type AccessTable,
  accessTable,
  allowed,
  as,
  type Caller,
  compare as compareAll,
  type Target,
  write,
} from '../../test/helpers/access-table.ts'
import { cellRow, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { sql } from '../db/db.ts'
import { type TestService, testService } from '../testing/index.ts'

/** Every kind of caller against every kind of cell, in every method. */

let test: TestService
let anchor: string
let table: AccessTable
let { callers, targets }: AccessTable = { callers: new Map(), targets: new Map() }
beforeAll(async () => {
  test = await testService()
  table = await accessTable(test)
  ;({ callers, targets } = table)
  anchor = await cellRow(test, { visibility: 'public' })
  for (const [i, { id }] of [...targets.values()].entries()) {
    await fieldRow(test, anchor, `f${i}`, id)
    await itemRow(test, anchor, `${i}`, id)
  }
})
afterAll(() => test.close())

const compare = (...rule: Parameters<typeof compareAll> extends [AccessTable, ...infer R] ? R : never) =>
  compareAll(table, ...rule)

it('the table has every combination of tiers, so that a rule too strict or too lax fails', () => {
  const tiers = [...callers.values()].flatMap((caller) =>
    [...targets.values()].map((cell) => Object.values(allowed(caller, cell)).join()),
  )
  expect([...new Set(tiers)].sort()).toEqual(
    ['false,false,false', 'true,false,false', 'true,true,false', 'true,true,true'].sort(),
  )
})

describe('every caller × every cell', () => {
  it('cell_get', async () => {
    const check = async (caller: Caller, { id }: Target) => {
      const outcome = await caller.client.try.cell_get({ id, ...as(caller) })
      return outcome.ok ? [outcome.result.can_edit, outcome.result.can_grant] : outcome.error.reason
    }
    expect(
      await compare(check, ({ view, edit, manage }) => (view ? [edit, manage] : 'cell_not_found')),
    ).toEqual([])
  })

  it('cell_list, with ids and without', async () => {
    const full = new Map<Caller, string[]>()
    for (const caller of callers.values()) {
      const { cells } = await caller.client.cell_list({ limit: 200, ...as(caller) })
      full.set(
        caller,
        cells.map(({ id }) => id),
      )
    }
    const check = async (caller: Caller, { id }: Target) => {
      const { cells } = await caller.client.cell_list({ ids: [id], ...as(caller) })
      return [cells.length === 1, full.get(caller)?.includes(id)]
    }
    expect(await compare(check, ({ view }) => [view, view])).toEqual([])
  })

  it('edges to the cell, from one that everybody sees', async () => {
    const check = async (caller: Caller, { id }: Target) => {
      const { fields, items } = await caller.client.cell_get({ id: anchor, ...as(caller) })
      return [fields.some(({ target_id }) => target_id === id), items.some(({ child_id }) => child_id === id)]
    }
    expect(await compare(check, ({ view }) => [view, view])).toEqual([])
  })

  it('cell_update of data, and without any change', async () => {
    let n = 0
    for (const changes of [() => ({}), () => ({ data_patch: { n: n++ } })]) {
      const check = (caller: Caller, { id }: Target) =>
        reasonOf(caller.client.cell_update({ cell_id: id, ...changes(), ...as(caller) }))
      expect(await compare(check, ({ edit }, caller) => write(edit, caller))).toEqual([])
    }
  })

  it('cell_update of visibility', async () => {
    const check = async (caller: Caller, { id, visibility }: Target) => {
      const other = visibility === 'public' ? 'private' : 'public'
      const reason = await reasonOf(
        caller.client.cell_update({ cell_id: id, visibility: other, ...as(caller) }),
      )
      await test.service.app.db.run(sql`update cell set visibility = ${visibility} where id = ${id}`)
      return reason
    }
    const rule = ({ edit, manage }: ReturnType<typeof allowed>, caller: Caller) =>
      edit && !manage ? 'cell_visibility_manage_only' : write(manage, caller)
    expect(await compare(check, rule)).toEqual([])
  })

  it('cell_update of the path', async () => {
    const check = async (caller: Caller, { id }: Target) => {
      const sent = { cell_id: id, path: `to ${id}`, ...as(caller) }
      const reason = await reasonOf(caller.client.cell_update(sent))
      await test.service.app.db.run(sql`update cell set path = null where id = ${id}`)
      return reason
    }
    const admin = callers.get('admin')
    const rule = ({ edit }: ReturnType<typeof allowed>, caller: Caller) =>
      caller === admin || caller.actor_id === null ? write(edit, caller) : 'cell_path_admin_only'
    expect(await compare(check, rule)).toEqual([])
  })

  it('cell_delete', async () => {
    const check = async (caller: Caller, target: Target) => {
      const { created_by, visibility, is_deleted } = target
      const copy = await cellRow(test, {
        created_by,
        visibility: visibility as 'public',
        deleted_at: is_deleted ? '2026-01-01T00:00:00Z' : null,
      })
      await test.service.app.db.run(sql`
        insert into cell_grant (cell_id, level, actor_id, role, scope_id, cell_created_at)
        select ${copy}::uuid, level, actor_id, role, scope_id, cell_created_at
        from cell_grant where cell_id = ${target.id}`)
      return await reasonOf(caller.client.cell_delete({ cell_id: copy, ...as(caller) }))
    }
    expect(await compare(check, ({ edit }, caller) => write(edit, caller))).toEqual([])
  })
})

import { describe, expect, test as it } from 'vitest'
import {
  accessTable,
  as,
  type Caller,
  compare,
  type Target,
  write,
} from '../../../test/helpers/access-table.ts'
import { cellRow, fieldRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'

/** Every kind of caller against every kind of cell, in every method of fields and items, as anchor and as far cell. */

/** A cell that each caller may edit. */
const mine = new Map<Caller, string>()
let made = 0
const test = await serviceForFile()
const table = await accessTable(test)
/** A public cell with edges to and from every cell of the table. */
const hub = await cellRow(test, { visibility: 'public' })
for (const caller of table.callers.values())
  mine.set(caller, await cellRow(test, { created_by: caller.actor_id }))
for (const [i, { id }] of [...table.targets.values()].entries()) {
  await fieldRow(test, hub, `f${i}`, id)
  await itemRow(test, hub, `${i}`, id)
  await fieldRow(test, id, 'hub', hub)
  await itemRow(test, id, 'hub', hub)
}

/** An unused name or position. */
const fresh = () => `k${++made}`
const own = (caller: Caller) => mine.get(caller) as string
type Method =
  | `cell_${'field' | 'item'}_${'list' | 'delete'}`
  | 'cell_field_set'
  | 'cell_item_insert'
  | 'cell_item_move'
const send =
  (method: Method, input: (caller: Caller, cell: Target) => object) => (caller: Caller, cell: Target) => {
    const call = caller.client[method] as (input: object) => Promise<unknown>
    return reasonOf(call({ ...input(caller, cell), ...as(caller) }))
  }

describe('lists', () => {
  it.each([
    ['the fields of the cell', 'cell_field_list', (id: string) => ({ source_id: id })],
    ['the fields to the cell', 'cell_field_list', (id: string) => ({ target_id: id })],
    ['the items of the cell', 'cell_item_list', (id: string) => ({ parent_id: id })],
    ['the items with the cell', 'cell_item_list', (id: string) => ({ child_id: id })],
  ] as const)('%s: who views the cell', async (_what, method, input) => {
    const check = send(method, (_caller, { id }) => input(id))
    expect(await compare(table, check, ({ view }, caller) => write(view, caller))).toEqual([])
  })

  it('all four show edges to and from the cell to whoever may view it', async () => {
    const check = async ({ client, ...caller }: Caller, { id }: Target) => {
      if (caller.actor_id === null) return 'authentication_required'
      const [forth, back, items, places] = await Promise.all([
        client.cell_field_list({ source_id: hub, ...as({ client, ...caller }) }),
        client.cell_field_list({ target_id: hub, ...as({ client, ...caller }) }),
        client.cell_item_list({ parent_id: hub, ...as({ client, ...caller }) }),
        client.cell_item_list({ child_id: hub, ...as({ client, ...caller }) }),
      ])
      return [
        forth.fields.some(({ target_id }) => target_id === id),
        back.fields.some(({ source_id }) => source_id === id),
        items.items.some(({ child_id }) => child_id === id),
        places.items.some(({ parent_id }) => parent_id === id),
      ]
    }
    const rule = ({ view }: { view: boolean }, { actor_id }: Caller) =>
      actor_id === null ? 'authentication_required' : [view, view, view, view]
    expect(await compare(table, check, rule)).toEqual([])
  })
})

describe('the cell as the anchor of a write: needs the edit tier', () => {
  it('cell_field_set', async () => {
    const check = send('cell_field_set', (_, { id }) => ({ source_id: id, name: fresh(), target_id: hub }))
    expect(await compare(table, check, ({ edit }, caller) => write(edit, caller))).toEqual([])
  })

  it('cell_field_set that changes nothing', async () => {
    const check = send('cell_field_set', (_, { id }) => ({ source_id: id, name: 'hub', target_id: hub }))
    expect(await compare(table, check, ({ edit }, caller) => write(edit, caller))).toEqual([])
  })

  it('cell_item_insert', async () => {
    const check = send('cell_item_insert', (_, { id }) => ({
      parent_id: id,
      child_id: hub,
      position: fresh(),
    }))
    expect(await compare(table, check, ({ edit }, caller) => write(edit, caller))).toEqual([])
  })

  it('cell_item_move, to another position and to the same', async () => {
    for (const moved of [fresh, undefined]) {
      const check = async (caller: Caller, cell: Target) => {
        const position = fresh()
        await itemRow(test, cell.id, position, hub)
        const sent = { parent_id: cell.id, position, new_position: moved?.() ?? position }
        return await send('cell_item_move', () => sent)(caller, cell)
      }
      expect(await compare(table, check, ({ edit }, caller) => write(edit, caller))).toEqual([])
    }
  })

  it.each([true, false])('cell_field_delete and cell_item_delete of an edge, there: %s', async (isThere) => {
    const check = async (caller: Caller, cell: Target) => {
      const key = fresh()
      if (isThere) await Promise.all([fieldRow(test, cell.id, key, hub), itemRow(test, cell.id, key, hub)])
      return [
        await send('cell_field_delete', () => ({ source_id: cell.id, name: key }))(caller, cell),
        await send('cell_item_delete', () => ({ parent_id: cell.id, position: key }))(caller, cell),
      ]
    }
    const rule = ({ edit }: { edit: boolean }, caller: Caller) => [write(edit, caller), write(edit, caller)]
    expect(await compare(table, check, rule)).toEqual([])
  })
})

describe('the cell as the far cell of a write: needs the view tier', () => {
  it('cell_field_set', async () => {
    const check = send('cell_field_set', (caller, { id }) => ({
      source_id: own(caller),
      name: fresh(),
      target_id: id,
    }))
    expect(await compare(table, check, ({ view }, caller) => write(view, caller))).toEqual([])
  })

  it('cell_item_insert', async () => {
    const check = send('cell_item_insert', (caller, { id }) => ({
      parent_id: own(caller),
      child_id: id,
      position: fresh(),
    }))
    expect(await compare(table, check, ({ view }, caller) => write(view, caller))).toEqual([])
  })

  it('cell_item_move', async () => {
    const check = async (caller: Caller, cell: Target) => {
      const position = fresh()
      await itemRow(test, own(caller), position, cell.id)
      const sent = { parent_id: own(caller), position, new_position: fresh() }
      return await send('cell_item_move', () => sent)(caller, cell)
    }
    expect(await compare(table, check, ({ view }, caller) => write(view, caller))).toEqual([])
  })

  it('deletion needs no right to view, only that the far cell is live', async () => {
    const check = async ({ client, ...caller }: Caller, { id }: Target) => {
      if (caller.actor_id === null) return false
      const name = fresh()
      const source_id = await cellRow(test, { created_by: caller.actor_id })
      await fieldRow(test, source_id, name, id)
      return (await client.cell_field_delete({ source_id, name, ...as({ client, ...caller }) })).deleted
    }
    const live = new Map([...table.targets.values()].map((cell) => [cell, !cell.is_deleted]))
    const wrong: string[] = []
    for (const [who, caller] of table.callers)
      for (const [what, cell] of table.targets)
        if ((await check(caller, cell)) !== (caller.actor_id !== null && live.get(cell)))
          wrong.push(`${who} × ${what}`)
    expect(wrong).toEqual([])
  })
})

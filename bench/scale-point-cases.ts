import type { Case, Filter } from './scale-cases.ts'
import { idOf, shapeId } from './world.ts'

/** Single cells, their edges and timelines, and writes. */
export function pointCases(): Case[] {
  const one = (
    name: string,
    method: string,
    caller: Case['caller'],
    params: Filter,
    more: Partial<Case> = {},
  ): Case => ({
    ...{ name: `${method} ${name}`, method, caller, filter: name, order: '', isDeep: false, bar: 3, params },
    ...more,
  })
  const get = (name: string, caller: Case['caller'], params: Filter, more: Partial<Case> = {}) =>
    one(name, 'cell_get', caller, params, { bar: 1.5, ...more })
  const refused = { refusal: 'cell_not_found' }
  const edges = (name: string, method: string, caller: Case['caller'], params: object): Case[] =>
    [false, true].map((isDeep) =>
      one(`${name} ${isDeep ? 'page 200' : 'first'}`, method, caller, () => ({ ...params }), { isDeep }),
    )
  return [
    get('by id, admin', 'admin', () => ({ id: liveCell })),
    get('by path, admin', 'admin', () => ({ path: 'docs/50/50' })),
    get('missing, nobody', 'nobody', () => ({ id: idOf('account', 0) }), refused),
    get('missing, anonymous', 'anonymous', () => ({ id: idOf('account', 0) }), refused),
    get('hidden, scoped_50', 'scoped_50', () => ({ id: shapeId('clone_root') }), refused),
    get('500 + 500 edges', 'owner', () => ({ id: shapeId('empty_edges') }), { targetMs: 20 }),
    get(
      '500 + 500 edges, targets of 100 kB against empty ones',
      'owner',
      () => ({ id: shapeId('large_edges') }),
      {
        bar: 2,
        against: () => ({ id: shapeId('empty_edges') }),
      },
    ),
    ...edges('of one parent', 'cell_item_list', 'owner', { parent_id: shapeId('busy_parent') }),
    ...edges('of one parent, admin', 'cell_item_list', 'admin', { parent_id: shapeId('busy_parent') }),
    ...edges('to a popular cell', 'cell_field_list', 'nobody', { target_id: shapeId('popular') }),
    ...edges('to a popular cell, admin', 'cell_field_list', 'admin', { target_id: shapeId('popular') }),
    ...edges('to the oldest cell', 'cell_item_list', 'admin', { child_id: liveCell }),
    one('of one cell', 'cell_field_list', 'owner', () => ({ source_id: shapeId('large_edges') })),
    one('of a cell', 'cell_audit_list', 'admin', () => ({ cell_id: liveCell })),
    one('of a cell without events', 'cell_audit_list', 'owner', () => ({ cell_id: shapeId('quiet') })),
    one('', 'cell_create', 'owner', () => ({ kind: 'note', data: { label: 'new' } }), { isWrite: true }),
    one('deep, 1000 cells', 'cell_clone', 'owner', () => ({ source_id: shapeId('clone_root'), deep: true }), {
      isWrite: true,
      targetMs: 1000,
    }),
  ]
}

/** The oldest cell, which is never deleted; readable by an admin. */
const liveCell = idOf('cell', 0)

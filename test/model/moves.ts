import fc from 'fast-check'
import {
  actor,
  anyCell,
  fieldName,
  held,
  kind,
  level,
  path,
  position,
  principal,
  visibility,
  who,
} from './world.ts'

/** Moves as data, so that a counter-example can be read and shrunk; `rules.ts` has their expected outcomes. */
const move = {
  create: fc.record({
    what: fc.constant('create' as const),
    visibility,
    kind,
    path: fc.option(path, { freq: 2 }),
  }),
  update: fc.record(
    {
      what: fc.constant('update' as const),
      cell: anyCell,
      patch: fc.nat(3),
      visibility,
      // Only admins may set it, so most moves leave it out.
      path: fc.constantFrom(undefined, undefined, undefined, undefined, null, 'p', 'p/q'),
      isStale: fc.constantFrom(false, false, false, false, true),
    },
    { requiredKeys: ['what', 'cell'] },
  ),
  delete: fc.record({ what: fc.constant('delete' as const), cell: anyCell }),
  clone: fc.record({ what: fc.constant('clone' as const), cell: anyCell, deep: fc.boolean() }),
  setField: fc.record({
    what: fc.constant('setField' as const),
    cell: anyCell,
    key: fieldName,
    far: anyCell,
  }),
  deleteField: fc.record({ what: fc.constant('deleteField' as const), cell: anyCell, key: fieldName }),
  insertItem: fc.record({
    what: fc.constant('insertItem' as const),
    cell: anyCell,
    key: position,
    far: anyCell,
  }),
  moveItem: fc.record({
    what: fc.constant('moveItem' as const),
    cell: anyCell,
    key: position,
    to: position,
  }),
  deleteItem: fc.record({ what: fc.constant('deleteItem' as const), cell: anyCell, key: position }),
  grant: fc.record({ what: fc.constant('grant' as const), cell: anyCell, level, to: principal }),
  revoke: fc.record({ what: fc.constant('revoke' as const), cell: anyCell, nth: fc.nat(5) }),
  /** Changes outside the calls: a role grant begins or ends, the owner of a cell is purged. */
  holdRole: fc.record({ what: fc.constant('holdRole' as const), held }),
  endRole: fc.record({ what: fc.constant('endRole' as const), nth: fc.nat(9) }),
  orphan: fc.record({ what: fc.constant('orphan' as const), cell: anyCell }),
}
type Moves = { [K in keyof typeof move]: (typeof move)[K] extends fc.Arbitrary<infer M> ? M : never }
export type Move<K extends keyof Moves = keyof Moves> = Moves[K]

const weights: Record<keyof Moves, number> = {
  create: 2,
  update: 5,
  delete: 1,
  clone: 1,
  setField: 3,
  deleteField: 2,
  insertItem: 3,
  moveItem: 4,
  deleteItem: 2,
  grant: 4,
  revoke: 2,
  holdRole: 2,
  endRole: 1,
  orphan: 1,
}
const anyMove: fc.Arbitrary<Move> = fc.oneof(
  ...(Object.keys(move) as (keyof Moves)[]).map((name) => ({
    weight: weights[name],
    arbitrary: move[name] as fc.Arbitrary<Move>,
  })),
)

/** Filters of `cell_list`; a list has two at most, since all together would leave nothing to list. */
const filter = fc.oneof(
  fc.constant({}),
  fc.record({ kind: fc.constantFrom('k', 'K') }),
  fc.record({ visibility: fc.constantFrom('private' as const, 'public' as const) }),
  fc.record({ created_by: actor }),
  fc.record({ path_prefix: fc.constantFrom('p', 'p/', 'q') }),
  fc.record({ shared_with: fc.constant('me' as const) }),
  fc.record({ ids: fc.array(anyCell, { maxLength: 6 }) }),
)
export type ListFilter = {
  kind?: string
  visibility?: 'private' | 'public'
  created_by?: number
  path_prefix?: string
  shared_with?: 'me'
  ids?: number[]
}
const order = fc.record({
  order_by: fc.constantFrom('created_at' as const, 'updated_at' as const),
  order_direction: fc.constantFrom('asc' as const, 'desc' as const),
  limit: fc.integer({ min: 1, max: 4 }),
})

/** A move by one caller, then a check of the world as another caller sees it, with one cell in detail. */
export const step = fc.record({
  by: who,
  /** Whether to pick an actor that may make the move, if there is one; by chance alone, few moves would succeed. */
  isAllowed: fc.constantFrom(true, true, false),
  move: anyMove,
  watcher: who,
  focus: anyCell,
  order,
  filter: fc.tuple(filter, filter).map(([one, other]): ListFilter => ({ ...one, ...other })),
})
export type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

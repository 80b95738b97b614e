import { z } from 'zod'
import { type Sql, sql } from '../../db/sql.ts'
import { worded } from '../../wire/rules.ts'
import { Uuid } from '../../wire/types.ts'
import { tiers, tiersOfMany } from '../access.ts'

/** Wire form of a field: a named edge of its source. */
export const Field = z.object({ source_id: Uuid, name: z.string(), target_id: Uuid, created_at: z.string() })
export type Field = z.output<typeof Field>

/** Wire form of an item: an edge at a position of its parent. */
export const Item = z.object({
  parent_id: Uuid,
  position: z.string(),
  child_id: Uuid,
  created_at: z.string(),
})
export type Item = z.output<typeof Item>

export const FieldName = z
  .string()
  .regex(
    worded(/^[a-z][a-z0-9_]{0,63}$/, 'A letter a to z, then up to 63 of a to z, 0 to 9 and _, are required.'),
  )
/** Opaque, sorted by bytes; the client chooses it and the server never rewrites it. */
export const Position = z
  .string()
  .regex(worded(/^[0-9A-Za-z]{1,200}$/, '1 to 200 of 0 to 9, A to Z and a to z are required.'))

/** A table of edges. An edge belongs to its anchor `from`, has a `key` unique there, and leads to the far cell `to`. */
export type Edges = { table: string; from: string; key: string; to: string }

export const fieldEdges: Edges = { table: 'cell_field', from: 'source_id', key: 'name', to: 'target_id' }
export const itemEdges: Edges = { table: 'cell_item', from: 'parent_id', key: 'position', to: 'child_id' }

/** The wire form of an edge with this alias, as columns. */
export const edgeColumns = ({ from, key, to }: Edges, alias: string): Sql =>
  sql.raw([from, key, to, 'created_at'].map((name) => `${alias}.${name}`).join(', '))

/**
 * A condition on an edge with this alias, whose anchor is live: its far cell is live too. PostgreSQL evaluates a scalar
 * subquery again, for the new far cell, after waiting for an update of the edge. With a join the updated edge would no
 * longer match the joined cell and count as gone.
 */
export const isLive = ({ to }: Edges, alias: string): Sql =>
  sql`(select deleted_at from cell where id = ${sql.raw(`${alias}.${to}`)}) is null`

const [farTiers, manyFarTiers] = [tiers('far'), tiersOfMany('far')]

/** Which edges of a cell to read, from where, and how many at most. */
export type Walk = {
  /** The cell's id. */
  anchor: Sql
  /** Read the edges that lead to the cell instead of those that belong to it. */
  isReverse?: boolean
  /** The key of the edge to start after; with `isFrom`, to start at. */
  after?: readonly unknown[] | null
  isFrom?: boolean
  size: number
  /** The cell has only a few edges. */
  isFew?: boolean
}

/**
 * How many edges one call examines at most; their far cells may all be hidden. It exceeds the default of
 * `max_cell_edges`, so that lists of a cell's own edges normally never reach it.
 */
const examinedMax = 12_000

/** The columns that edges are ordered by: a unique key, and the order of their index. */
export const edgeOrder = ({ from, key }: Edges, isReverse = false): string[] =>
  isReverse ? ['created_at', from, key] : [key]

/**
 * The edges of a cell whose far cell the caller may view, limited after that filter; needs `me`. It walks the
 * index in order and probes each far cell once, until there are enough. If it has examined its max, the last
 * row is the edge at which to continue, without its far cell (`to` is null).
 *
 * The condition is a range between two bounds, for which the planner expects many edges. Given `near = …` it
 * expects few and sorts them: for a popular cell, all of its thousands for a page of twenty. The probe is a scalar
 * subquery, because the planner might join with the whole table of cells, or memoize a far cell for each edge.
 */
export function visibleEdges(
  edges: Edges,
  { anchor, isReverse = false, after, isFrom = false, size, isFew = false }: Walk,
): Sql {
  const [near, far] = isReverse ? [edges.to, edges.from] : [edges.from, edges.to]
  const order = edgeOrder(edges, isReverse)
  const names = (some: string[]): Sql => sql.raw(some.map((name) => `e.${name}`).join(', '))
  const sorted = names([near, ...order])
  const lower = after
    ? sql`(${sorted}) ${sql.raw(isFrom ? '>=' : '>')} (${anchor}, ${sql.join(order.map(cursorValue(after)), ', ')})`
    : sql`(${names([near, ...order.slice(0, 1)])}) >= (${anchor}, ${sql.raw(isReverse ? `'-infinity'` : `''`)})`
  const { view } = isFew ? farTiers : manyFarTiers
  const isEnd = sql`e.nth = ${sql.raw(examinedMax)}`
  return sql`
    select ${names([edges.from, edges.key])}, case when ${isEnd} then null else ${names([edges.to])} end as ${sql.raw(edges.to)},
      e.created_at
    from (
      select ${edgeColumns(edges, 'e')}, row_number() over (order by ${sorted}) as nth
      from ${sql.raw(edges.table)} e
      where ${lower} and ${names([near])} <= ${anchor}
      order by ${sorted} limit ${sql.raw(examinedMax)}
    ) e, me
    where ${isEnd} or (select ${view} from cell far where far.id = ${names([far])})
    order by ${sorted} limit ${sql.raw(size)}`
}

/** The value in a cursor's key for a column, cast to the type of that column. */
const cursorValue =
  (after: readonly unknown[]) =>
  (name: string, index: number): Sql => {
    const type = name === 'created_at' ? 'timestamptz' : name.endsWith('_id') ? 'uuid' : 'text'
    return sql`${after[index]}::${sql.raw(type)}`
  }

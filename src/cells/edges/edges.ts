import { z } from 'zod'
import { type Sql, sql } from '../../db/sql.ts'
import { Uuid } from '../../wire/types.ts'
import { tier, tiers } from '../access.ts'

/** Wire form of a field: a named edge of its source (contract 4, section 3.1). */
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

export const FieldName = z.string().regex(/^[a-z][a-z0-9_]{0,63}$/)
/** Opaque, in byte order; the client makes it, the server never rewrites it. */
export const Position = z.string().regex(/^[0-9A-Za-z]{1,200}$/)

/** A table of edges: they belong to the anchor `from`, where `key` is unique, and lead to the far cell `to`. */
export type Edges = { table: string; from: string; key: string; to: string }

export const fieldEdges: Edges = { table: 'cell_field', from: 'source_id', key: 'name', to: 'target_id' }
export const itemEdges: Edges = { table: 'cell_item', from: 'parent_id', key: 'position', to: 'child_id' }

/** The wire form of an edge with this alias, as columns. */
export const edgeColumns = ({ from, key, to }: Edges, alias: string): Sql =>
  sql.raw([from, key, to, 'created_at'].map((name) => `${alias}.${name}`).join(', '))

/** Over `cell c, cell far, me`: the caller may link these two. */
export const linkable = (anchor_id: string, far_id: string): Sql =>
  sql`c.id = ${anchor_id}::uuid and ${tier.edit} and far.id = ${far_id}::uuid and ${tiers('far').view}`

/**
 * Over an edge with this alias, whose anchor is live: its far cell is, too. A scalar subquery, because only
 * that is asked again for the new far cell where the statement waited for a change of the edge; a join would
 * find that the edge has left the cell it was joined to, and take it for gone.
 */
export const isLive = ({ to }: Edges, alias: string): Sql =>
  sql`(select deleted_at from cell where id = ${sql.raw(`${alias}.${to}`)}) is null`

/** Which edges of a cell, from where on and how many at most. */
export type Walk = {
  /** The cell's id. */
  anchor: Sql
  /** Edges that lead to the cell instead of those that belong to it. */
  isReverse?: boolean
  /** The key of an edge; those behind it follow, and where `isFrom` the edge itself comes first. */
  after?: readonly unknown[] | null
  isFrom?: boolean
  size: number
}

/**
 * Edges that one call examines, whose far cells may all be hidden. More than the default of `max_cell_edges`
 * allows a cell, so that the lists of its own edges never end here in ordinary use.
 */
const examinedMax = 12_000

/** What edges are ordered by: unique, and what their index has in this order. */
export const edgeOrder = ({ from, key }: Edges, isReverse = false): string[] =>
  isReverse ? ['created_at', from, key] : [key]

/**
 * The edges of a cell whose far cell the caller may view, cut after that filter; needs `me`. It walks the index
 * in order and probes each far cell once, until there are enough. Where it has examined as many as a call may,
 * its last row is the edge at which to go on, without its far cell (`to` is null).
 *
 * Given `near = …` the planner expects a few edges and sorts them, which for a popular cell are all of its
 * thousands for a page of twenty; of a range between two bounds it expects many. The probe is a value and no
 * join: that would be one with all cells there are, or prepare to remember as many far cells as there may be
 * edges.
 */
export function visibleEdges(
  edges: Edges,
  { anchor, isReverse = false, after, isFrom = false, size }: Walk,
): Sql {
  const [near, far] = isReverse ? [edges.to, edges.from] : [edges.from, edges.to]
  const order = edgeOrder(edges, isReverse)
  const names = (some: string[]): Sql => sql.raw(some.map((name) => `e.${name}`).join(', '))
  const sorted = names([near, ...order])
  const lower = after
    ? sql`(${sorted}) ${sql.raw(isFrom ? '>=' : '>')} (${anchor}, ${sql.join(order.map(cursorValue(after)), ', ')})`
    : sql`(${names([near, ...order.slice(0, 1)])}) >= (${anchor}, ${sql.raw(isReverse ? `'-infinity'` : `''`)})`
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
    where ${isEnd} or (select ${tiers('far').view} from cell far where far.id = ${names([far])})
    order by ${sorted} limit ${sql.raw(size)}`
}

/** The value of a cursor's key for a column, as the type of that column. */
const cursorValue =
  (after: readonly unknown[]) =>
  (name: string, index: number): Sql => {
    const type = name === 'created_at' ? 'timestamptz' : name.endsWith('_id') ? 'uuid' : 'text'
    return sql`${after[index]}::${sql.raw(type)}`
  }

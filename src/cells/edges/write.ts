import { type Queryable, type Sql, sql } from '../../db/db.ts'
import { brokenConstraint } from '../../db/servers/failure.ts'
import { refusal, type ServiceError } from '../../errors.ts'
import { me, tier } from '../access.ts'
import { type Edges, edgeColumns, type Item, isLive, itemEdges } from './edges.ts'

/**
 * Deletes the live edge at a key and resolves to its far cell, or null if there is none. Refuses if the caller may
 * not edit the anchor; the far cell need not be visible. Both statements check the tier, so that a right that is
 * lost in between doesn't count.
 */
export async function removeEdge(
  db: Queryable,
  edges: Edges,
  { actor_id, anchor_id, key }: { actor_id: string; anchor_id: string; key: string },
): Promise<string | null> {
  const table = sql.raw(edges.table)
  const isIt = sql`e.${sql.raw(edges.from)} = c.id and e.${sql.raw(edges.key)} = ${key} and ${isLive(edges, 'e')}`
  const locked = await db.first<{ isThere: boolean }>(sql`
    with ${me(actor_id)}
    select exists (select from ${table} e where ${isIt}) as "isThere"
    from cell c, me where c.id = ${anchor_id}::uuid and ${tier.edit} for share of c`)
  if (!locked) throw refusal('cell_not_found')
  if (!locked.isThere) return null
  const removed = await db.first<{ far_id: string | null }>(sql`
    with ${me(actor_id)}, c as (
      select c.id from cell c, me where c.id = ${anchor_id}::uuid and ${tier.edit}
    ), removed as (
      delete from ${table} e using c where ${isIt} returning e.${sql.raw(edges.to)} as far_id
    )
    select removed.far_id from c left join removed on true`)
  if (!removed) throw refusal('cell_not_found')
  return removed.far_id
}

/**
 * Puts an item at a position that is free or held by an item whose child is deleted; a moved item gives up its
 * old position (`leaves`). `item` selects `parent_id`, `child_id` and `created_at` if the caller has the right, and
 * may use `me`.
 */
export async function placeItem(
  db: Queryable,
  actor_id: string,
  { item, position, leaves }: { item: Sql; position: string; leaves?: string },
): Promise<Item> {
  const left = sql`, removed as (
    delete from cell_item old using placed
    where old.parent_id = placed.parent_id and old.position = ${leaves}
  )`
  const placed = await db
    .first<Item | { [K in keyof Item]: null }>(sql`
      with ${me(actor_id)}, item as (${item}), placed as (
        insert into cell_item as held (parent_id, position, child_id, created_at)
        select parent_id, ${position}, child_id, created_at from item
        on conflict (parent_id, position) do update
          set child_id = excluded.child_id, created_at = excluded.created_at
          where not ${isLive(itemEdges, 'held')}
        returning ${edgeColumns(itemEdges, 'held')}
      )${leaves === undefined ? sql.empty : left}
      select placed.* from item left join placed on true`)
    .catch((error) => {
      throw edgeWriteError(error)
    })
  if (!placed) throw refusal('cell_not_found')
  if (placed.parent_id === null) throw refusal('cell_item_position_taken')
  return placed
}

/** A far cell that was purged while the edge was written is refused like any other missing cell. */
export const edgeWriteError = (error: unknown): ServiceError | unknown =>
  brokenConstraint(error)?.endsWith('_fkey') ? refusal('cell_not_found') : error

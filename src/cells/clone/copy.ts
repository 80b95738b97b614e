import { type Sql, sql } from '../../db/sql.ts'
import { unplanned } from '../../db/unplanned.ts'
import type { CellData } from '../../registry/hooks.ts'
import { me, tiersOfMany } from '../access.ts'
import { cellColumns } from '../cells.ts'
import { compactBytes } from '../data.ts'
import { counted, room, type Way, type Write } from '../usage.ts'

/** A cell to create from another one; without `data` it copies the data of its source. */
export type Copy = { source_id: string; new_id: string; data: CellData | undefined }

/**
 * Creates all cells of a clone and their edges in one statement and returns the new root, which comes first in
 * `copies`. Writes and returns nothing if there is no room, or if the caller may no longer view one of the sources.
 *
 * Lookups are forced (`offset 0`, a JSON map), because a generic plan, which does not know the number of cells,
 * would join thousands of rows by nested loops.
 */
export function copyStatement(
  actor_id: string,
  copies: readonly Copy[],
  deep: boolean,
  write: Write,
  way: Way,
): Sql {
  const [root] = copies as [Copy, ...Copy[]]
  const given = copies.map(({ data }) => data)
  const source_ids = copies.map(({ source_id }) => source_id)
  return sql`
    with ${me(actor_id)}, ${room(write, way)}, plan as (
      select * from unnest(
        ${unplanned(source_ids, 'uuid[]')}, ${copies.map(({ new_id }) => new_id)}::uuid[],
        ${given.map((data) => data && JSON.stringify(data))}::text[],
        ${given.map((data) => data && compactBytes(data))}::int[]
      ) as p (source_id, new_id, data, data_bytes)
    ), source as materialized (
      select p.source_id, p.new_id, c.kind, c.visibility, coalesce(p.data::jsonb, c.data) as data,
        coalesce(p.data_bytes, c.data_bytes) as data_bytes
      from plan p cross join lateral (select * from cell where id = p.source_id offset 0) c, me
      where ${tiersOfMany('c').view}
    ), whole as materialized (
      select jsonb_object_agg(source_id, new_id) as copy_of from source
      having count(*) = ${copies.length}::int and exists (select from room)
    ), written as (
      insert into cell as c (id, kind, visibility, data, data_bytes, created_by)
      select new_id, kind, visibility, data, data_bytes, ${actor_id}::uuid from source, whole
      returning ${cellColumns}
    ), fields as (
      insert into cell_field (source_id, name, target_id)
      ${edges('cell_field', 'source_id', 'name', 'target_id', deep)}
    ), items as (
      insert into cell_item (parent_id, position, child_id)
      ${edges('cell_item', 'parent_id', 'position', 'child_id', deep)}
    ), ${counted(write, way)}
    select ${cellColumns} from written c where c.id = ${root.new_id}::uuid`
}

/**
 * The edges of the copies. In a deep clone each leads to the copy of its far cell; every visible far cell has one,
 * hidden ones have none. In a shallow clone each leads to the same far cell, if the caller may view that.
 */
function edges(table: string, from: string, key: string, to: string, deep: boolean): Sql {
  const columns = sql.raw(`${key} as key, ${to} as far_id`)
  const all = sql`source s cross join lateral (
    select ${columns} from ${sql.raw(table)} where ${sql.raw(from)} = s.source_id offset 0
  ) e, whole`
  if (deep)
    return sql`select new_id, key, copy_id from (
        select s.new_id, e.key, (whole.copy_of ->> e.far_id::text)::uuid as copy_id from ${all} offset 0
      ) e where copy_id is not null`
  return sql`select s.new_id, e.key, e.far_id from ${all} cross join lateral (
      select visibility, created_by, deleted_at, id from cell where id = e.far_id offset 0
    ) far, me where ${tiersOfMany('far').view}`
}

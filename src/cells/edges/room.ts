import { type Queryable, type Sql, sql } from '../../db/db.ts'
import { refusal } from '../../errors.ts'
import { type Edges, fieldEdges, isLive } from './edges.ts'

/**
 * An upper bound for what concurrent statements, each of up to 16 edges, add to one cell. While a cell is further than
 * this from the max, writers need no lock.
 */
const underWay = 1000

/**
 * A condition on `cell c`: one more edge may exceed its max. It counts edges in the index up to that number, which
 * takes about a millisecond for ten thousand.
 */
export function isNearlyFull({ table, from }: Edges, max: number | null): Sql {
  if (max === null) return sql`false`
  if (max <= underWay) return sql`true`
  const offset = sql.raw(max - underWay)
  return sql`exists (select from ${sql.raw(table)} where ${sql.raw(from)} = c.id offset ${offset} limit 1)`
}

/**
 * Refuses an edge beyond the max of its cell. Calls that add to a nearly full cell pass through here
 * one at a time, each until the end of its transaction. Edges to deleted cells are removed to make room, since
 * no caller can see or delete them.
 */
export async function makeRoom(
  db: Queryable,
  edges: Edges,
  { anchor_id, key, max }: { anchor_id: string; key: string; max: number | null },
): Promise<void> {
  if (max === null) return
  const [table, from, name] = [edges.table, edges.from, edges.key].map((one) => sql.raw(one)) as [
    Sql,
    Sql,
    Sql,
  ]
  // A separate statement, so that the next one sees what earlier lock holders have committed.
  await db.run(sql`
    select pg_advisory_xact_lock(hashtextextended(${`${edges.table} ${anchor_id}`}, 0))`)
  const own = sql`from ${table} where ${from} = ${anchor_id}::uuid`
  const { stored, holds } = await db.one<{ stored: number; holds: boolean }>(sql`
    with stored as (
      select count(*) as n from (select ${own} limit ${sql.raw(2 * max)}) bounded
    ), gone as (
      delete from ${table} e using stored, (select ${name} as key ${own} order by ${name} limit ${sql.raw(max)}) one
      where stored.n >= ${max}::int and e.${from} = ${anchor_id}::uuid and e.${name} = one.key
        and e.${name} <> ${key} and not ${isLive(edges, 'e')}
      returning 1
    )
    select (select n from stored) - (select count(*) from gone) as stored,
      exists (select ${own} and ${name} = ${key}) as holds`)
  if (!holds && stored >= max)
    throw refusal('cell_edges_full', { limit: edges === fieldEdges ? 'fields' : 'items', max })
}

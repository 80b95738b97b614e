import { type Queryable, type Sql, sql } from '../../db/db.ts'
import { refusal } from '../../errors.ts'
import { type Edges, fieldEdges, isLive } from './edges.ts'

/** More than the transactions that a database runs at once: so far from the limit, writers need not take turns. */
const underWay = 1000

/**
 * Over `cell c`: it has so many edges that one more may be too many. Walks the index to there, which takes about
 * a millisecond where a cell has its ten thousand.
 */
export function isNearlyFull({ table, from }: Edges, max: number | null): Sql {
  if (max === null) return sql`false`
  if (max <= underWay) return sql`true`
  const offset = sql.raw(max - underWay)
  return sql`exists (select from ${sql.raw(table)} where ${sql.raw(from)} = c.id offset ${offset} limit 1)`
}

/**
 * Refuses an edge that would be one too many of its cell. Whoever adds to a nearly full cell comes through here,
 * one after the other until the end of their transactions. Edges to deleted cells give way: nobody can see or
 * remove them.
 */
export async function makeRoom(
  db: Queryable,
  edges: Edges,
  { anchor_id, key, max }: { anchor_id: string; key: string; max: number },
): Promise<void> {
  const [table, from, name] = [edges.table, edges.from, edges.key].map((one) => sql.raw(one)) as [
    Sql,
    Sql,
    Sql,
  ]
  // A statement of its own: the next one sees what those before have committed.
  await db.run(sql`
    select pg_advisory_xact_lock(hashtextextended(${`${edges.table} ${anchor_id}`}, 0))`)
  const own = sql`from ${table} where ${from} = ${anchor_id}::uuid`
  const { stored, holds } = (await db.first<{ stored: number; holds: boolean }>(sql`
    with stored as (
      select count(*) as n from (select ${own} limit ${sql.raw(2 * max)}) bounded
    ), gone as (
      delete from ${table} e using stored, (select ${name} as key ${own} order by ${name} limit ${sql.raw(max)}) one
      where stored.n >= ${max}::int and e.${from} = ${anchor_id}::uuid and e.${name} = one.key
        and e.${name} <> ${key} and not ${isLive(edges, 'e')}
      returning 1
    )
    select (select n from stored) - (select count(*) from gone) as stored,
      exists (select ${own} and ${name} = ${key}) as holds`)) as { stored: number; holds: boolean }
  if (!holds && stored >= max)
    throw refusal('cell_edges_full', { limit: edges === fieldEdges ? 'fields' : 'items', max })
}

import { type Queryable, type Sql, sql } from '../../db/db.ts'
import { refusal } from '../../errors.ts'
import { me, tiersOfMany } from '../access.ts'
import { type Edges, fieldEdges, itemEdges } from '../edges/edges.ts'

/** Limits of one clone. */
export const cloneLimits = { cells: 1000, depth: 32, edges: 10_000, bytes: 16_777_216 } as const

export const tooLarge = (limit: keyof typeof cloneLimits, max: number = cloneLimits[limit]) =>
  refusal('cell_clone_too_large', { limit, max })

/**
 * How many edges one clone examines at most, deleted and hidden ones included: those do not count as copied, but
 * each costs a lookup.
 */
const examinedMax = 50_000

/**
 * What a clone copies: the ids of the cells, root first, the totals, and how many levels there are below the root.
 * `examined` counts all edges that it looked up, hidden ones too.
 */
export type Walked = { ids: string[]; edges: number; bytes: number; depth: number; examined: number }

/**
 * Walks from the root over visible edges, level by level, with one statement per level; without `deep`, only over
 * the root's own edges. Hidden cells are neither walked nor counted. No copy may have more fields, or items, than
 * `edgesOfCellMax`.
 */
export async function cellsToClone(
  db: Pick<Queryable, 'rows'>,
  actor_id: string,
  root: { id: string; bytes: number },
  { deep, edgesOfCellMax }: { deep: boolean; edgesOfCellMax: number | null },
): Promise<Walked> {
  const known = new Set([root.id])
  let frontier = [root.id]
  let edges = 0
  let examined = 0
  let bytes = root.bytes
  let depth = 0
  while (frontier.length > 0) {
    const left = { visible: cloneLimits.edges - edges, examined: examinedMax - examined }
    const rows = await db.rows<Reached | Unreached>(edgesOf(actor_id, frontier, left))
    const level = rows.filter((row): row is Reached => row.id !== null)
    examined += rows[0]?.examined ?? 0
    edges += level.reduce((sum, cell) => sum + cell.edges, 0)
    if (edges > cloneLimits.edges) throw tooLarge('edges')
    if (edgesOfCellMax !== null && (level[0]?.fullest ?? 0) > edgesOfCellMax)
      throw tooLarge('edges', edgesOfCellMax)
    if (examined > examinedMax) throw tooLarge('edges', examinedMax)
    if (!deep) break
    const found = level.filter(({ id }) => !known.has(id))
    if (found.length > 0 && ++depth > cloneLimits.depth) throw tooLarge('depth')
    frontier = found.map(({ id }) => id)
    for (const id of frontier) known.add(id)
    if (known.size > cloneLimits.cells) throw tooLarge('cells')
    bytes += found.reduce((sum, { data_bytes }) => sum + data_bytes, 0)
    if (bytes > cloneLimits.bytes) throw tooLarge('bytes')
  }
  return { ids: [...known], edges, bytes, depth, examined }
}

/**
 * A visible cell, the number of edges that lead to it, the highest count of fields, or items, of one source, and how
 * many edges the statement has examined.
 */
type Reached = { id: string; data_bytes: number; edges: number; fullest: number; examined: number }
type Unreached = { id: null; examined: number }

/**
 * The visible cells at the far ends of all edges of some cells; if there are none, one row with a null id. Reads one
 * edge more than each allowance (examined and visible), which is enough to detect that there are too many. The loop
 * over the cells is forced (`offset 0`), since a join might read the edges of all of them before the first is counted.
 */
const edgesOf = (actor_id: string, from: string[], left: { visible: number; examined: number }): Sql => sql`
  with ${me(actor_id)}, examined as materialized (
    select near.id as near_id, e.relation, e.far_id from unnest(${from}::uuid[]) near (id) cross join lateral (
      (${ownEdges(fieldEdges)}) union all (${ownEdges(itemEdges)}) offset 0
    ) e limit ${left.examined + 1}::int
  ), visible as (
    select c.id, c.data_bytes, e.near_id, e.relation
    from examined e cross join lateral (
      select id, visibility, created_by, deleted_at, data_bytes from cell where id = e.far_id offset 0
    ) c, me
    where ${tiersOfMany('c').view} limit ${left.visible + 1}::int
  )
  select reached.*, total.examined from (select count(*)::int as examined from examined) total left join (
    select id, data_bytes, count(*)::int as edges, (
      select max(edges)::int from (select count(*) as edges from visible group by near_id, relation) of_cells
    ) as fullest
    from visible group by id, data_bytes
  ) reached on true`

/** The edges of `near` by the index of the primary key: given `near = …`, the planner might read the whole table. */
const ownEdges = (edges: Edges): Sql => {
  const [table, from, key, to] = [edges.table, edges.from, edges.key, edges.to].map((one) => sql.raw(one))
  return sql`
    select '${table}' as relation, ${to} as far_id from ${table}
    where (${from}, ${key}) >= (near.id, '') and ${from} <= near.id order by ${from}, ${key}`
}

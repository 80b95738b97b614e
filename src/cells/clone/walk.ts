import { type Queryable, type Sql, sql } from '../../db/db.ts'
import { refusal } from '../../errors.ts'
import { me, tier } from '../access.ts'

/** Limits of one clone. */
export const cloneLimits = { cells: 1000, depth: 32, edges: 10_000, bytes: 16_777_216 } as const

export const tooLarge = (limit: keyof typeof cloneLimits, max: number = cloneLimits[limit]) =>
  refusal('cell_clone_too_large', { limit, max })

/** What a clone copies: the ids of the cells, root first, the totals, and how many levels there are below the root. */
export type Walked = { ids: string[]; edges: number; bytes: number; depth: number }

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
  let [frontier, edges, bytes, depth] = [[root.id], 0, root.bytes, 0]
  while (frontier.length > 0) {
    const level = await db.rows<Reached>(edgesOf(actor_id, frontier, cloneLimits.edges - edges))
    edges += level.reduce((sum, cell) => sum + cell.edges, 0)
    if (edges > cloneLimits.edges) throw tooLarge('edges')
    if (edgesOfCellMax !== null && (level[0]?.fullest ?? 0) > edgesOfCellMax)
      throw tooLarge('edges', edgesOfCellMax)
    if (!deep) break
    const found = level.filter(({ id }) => !known.has(id))
    if (found.length > 0 && ++depth > cloneLimits.depth) throw tooLarge('depth')
    frontier = found.map(({ id }) => id)
    for (const id of frontier) known.add(id)
    if (known.size > cloneLimits.cells) throw tooLarge('cells')
    bytes += found.reduce((sum, { data_bytes }) => sum + data_bytes, 0)
    if (bytes > cloneLimits.bytes) throw tooLarge('bytes')
  }
  return { ids: [...known], edges, bytes, depth }
}

/** A visible cell, the number of edges that lead to it, and the highest count of fields, or items, of one source. */
type Reached = { id: string; data_bytes: number; edges: number; fullest: number }

/**
 * The visible cells at the far ends of all edges of some cells. Reads one edge more than allowed, which is enough
 * to know that there are too many.
 */
const edgesOf = (actor_id: string, from: string[], allowed: number): Sql => sql`
  with ${me(actor_id)}, visible as (
    select c.id, c.data_bytes, e.near_id, e.is_field
    from (
      select source_id as near_id, true as is_field, target_id as far_id
      from cell_field where source_id = any(${from}::uuid[])
      union all
      select parent_id, false, child_id from cell_item where parent_id = any(${from}::uuid[])
    ) e cross join lateral (
      select id, visibility, created_by, deleted_at, data_bytes from cell where id = e.far_id offset 0
    ) c, me
    where ${tier.view} limit ${allowed + 1}::int
  )
  select id, data_bytes, count(*)::int as edges, (
    select max(edges)::int from (select count(*) as edges from visible group by near_id, is_field) of_cells
  ) as fullest
  from visible group by id, data_bytes`

import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { me, tier } from './access.ts'

/** What one clone may come to (contract 4, section 6.7). */
export const cloneLimits = { cells: 1000, depth: 32, edges: 10_000, bytes: 16_777_216 } as const

export const tooLarge = (limit: keyof typeof cloneLimits) =>
  refusal('cell_clone_too_large', { limit, max: cloneLimits[limit] })

/**
 * The ids of the cells that a clone copies, the root first. Deep: each cell once that visible edges lead to,
 * level by level, one statement for each. Hidden cells are neither walked through nor counted.
 */
export async function cellsToClone(
  db: Queryable,
  actor_id: string,
  root: { id: string; bytes: number },
  deep: boolean,
): Promise<string[]> {
  const known = new Set([root.id])
  let [frontier, edges, bytes] = [[root.id], 0, root.bytes]
  for (let depth = 1; frontier.length > 0; depth++) {
    const level = await db.rows<{ id: string; data_bytes: number; edges: number }>(
      edgesOf(actor_id, frontier, cloneLimits.edges - edges),
    )
    edges += level.reduce((sum, cell) => sum + cell.edges, 0)
    if (edges > cloneLimits.edges) throw tooLarge('edges')
    if (!deep) break
    const found = level.filter(({ id }) => !known.has(id))
    if (found.length > 0 && depth > cloneLimits.depth) throw tooLarge('depth')
    frontier = found.map(({ id }) => id)
    for (const id of frontier) known.add(id)
    if (known.size > cloneLimits.cells) throw tooLarge('cells')
    bytes += found.reduce((sum, { data_bytes }) => sum + data_bytes, 0)
    if (bytes > cloneLimits.bytes) throw tooLarge('bytes')
  }
  return [...known]
}

/**
 * The visible cells at the far ends of all edges of some cells, with the number of edges to each. One edge
 * more than may be is enough to know that there are too many.
 */
const edgesOf = (actor_id: string, from: string[], allowed: number): Sql => sql`
  with ${me(actor_id)}, visible as (
    select c.id, c.data_bytes
    from (
      select target_id as far_id from cell_field where source_id = any(${from}::uuid[])
      union all
      select child_id from cell_item where parent_id = any(${from}::uuid[])
    ) e cross join lateral (
      select id, visibility, created_by, deleted_at, data_bytes from cell where id = e.far_id offset 0
    ) c, me
    where ${tier.view} limit ${allowed + 1}::int
  )
  select id, data_bytes, count(*) as edges from visible group by id, data_bytes`

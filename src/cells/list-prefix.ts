import { type Sql, sql } from '../db/sql.ts'
import { tier } from './access.ts'
import {
  all,
  beyond,
  cellKey,
  columns,
  filters,
  hasPath,
  inOrder,
  type ListInput,
  type Page,
} from './list-walk.ts'

/** So many matches of a prefix are sorted at once. */
export const fewMax = 500

/** What indexes begin with: the cells of one visibility, of one creator or of all. */
export type Scope = Pick<ListInput, 'visibility' | 'created_by'>

/**
 * Cells of a scope under a path prefix. Few matches are taken from the index on the path and sorted. Many are
 * met by a walk in the order of the page over all cells of the scope that have a path. It asks for columns of
 * its index alone: so what does not match costs no look at the cell, and no other index is as cheap, even where
 * the planner expects next to nothing of a creator and would take any index and sort.
 */
export function underPrefix(page: Page, path_prefix: string, scope: Scope): Sql {
  const { kind } = page
  const indexed = [tier.live, hasPath, ...filters(scope)]
  const prefix = filters({ path_prefix })
  const { key, id } = cellKey(page)
  const areMany = sql`(select count(*) > ${sql.raw(fewMax)} from few)`
  return sql`(
    with few as materialized (
      select ${columns} from cell c where ${all([...indexed, ...prefix])}
      order by c.path limit ${sql.raw(fewMax)} + 1
    )
    (
      select c.id, ${key} as key, c.data_bytes from few c
      where ${all([sql`not ${areMany}`, ...filters({ kind }), ...beyond(page)])}
      ${inOrder(page)} limit ${page.size}
    ) union all (
      select c.id, c.key, (select data_bytes from cell where id = c.id)
      from (
        select ${id}, ${key} as key, c.path, c.kind from cell c where ${all([...indexed, ...beyond(page)])}
        ${inOrder(page)} offset 0
      ) c where ${all([areMany, ...prefix, ...filters({ kind })])} limit ${page.size}
    ))`
}

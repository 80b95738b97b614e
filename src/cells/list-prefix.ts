import { type Sql, sql } from '../db/sql.ts'
import { tier } from './access.ts'
import {
  all,
  beyond,
  cellKey,
  columns,
  filters,
  inOrder,
  isDone,
  isVisibility,
  type Page,
  shortWalk,
  walk,
} from './list-walk.ts'

/** So many matches of a prefix are sorted at once. */
const fewMax = 5000
/** So many still are where a walk did not soon fill the page, since they may all be at its far end. */
const someMax = 200_000

/**
 * Cells of one visibility under a path prefix. Few matches are taken from the path index and sorted; many fill
 * a page soon by a walk in the order of the page. Where that gives up, no index has both path and order: then
 * again it is the matches that are sorted, or the walk goes on if they are very many.
 */
export function underPrefix(page: Page, path_prefix: string, visibility: string): Sql {
  const prefix = filters({ path_prefix })
  const indexed = [isVisibility(visibility), ...filters({ kind: page.kind })]
  const matching = all([tier.live, isVisibility(visibility), ...prefix])
  /** Counted in the index alone. */
  const areOver = (max: number, ...conditions: Sql[]): Sql => sql`
    select count(*) > ${sql.raw(max)} as are_over
    from (select from cell c where ${all([...conditions, matching])} limit ${sql.raw(max)} + 1) c`
  const isMany = sql`(select are_over from few)`
  const isVast = sql`(select are_over from some_more)`
  const isOpen = sql`(select is_open from near_end)`
  return sql`(
    with few as materialized (${areOver(fewMax)}),
    near as materialized (${shortWalk(page, indexed, [isMany, ...prefix])}),
    near_end as materialized (
      select ${isMany} and not ${isDone(page, indexed, sql`(select count(*) from near)`)} as is_open
    ), some_more as materialized (${areOver(someMax, isOpen)})
    select id, key, data_bytes from near where not ${isOpen}
    union all (
      select c.id, ${cellKey(page).key} as key, c.data_bytes
      from (select ${columns} from cell c where ${matching} order by c.path offset 0) c
      where ${all([sql`(not ${isMany} or (${isOpen} and not ${isVast}))`, ...indexed, ...beyond(page)])}
      ${inOrder(page)} limit ${page.size})
    union all ${walk(page, indexed, [isOpen, isVast, ...prefix])})`
}

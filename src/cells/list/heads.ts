import { pageSize } from '../../core/page.ts'
import { type Sql, sql } from '../../db/sql.ts'

/**
 * The grants that a page needs, merged in the order of the list from the first ones of each principal of the caller.
 * Cells are then looked up one after the other until the page is full, rather than a page of cells per principal. The
 * merge ends at the frontier, the first place where a principal has more grants than were read, because it is
 * incomplete beyond.
 */

type List = { order_direction: 'asc' | 'desc'; limit: number; hasManyRoles: boolean }
/** The condition and order of the list in the columns of `cell_grant h`. */
type InGrants = { beyond: Sql; inOrder: Sql; key: Sql }

/**
 * How many grants of each principal are read, in pages: nearly always enough, although some of their cells do not pass
 * the filters.
 */
const pages = 2

/** Common table expressions; they need `me`. */
export function heads(
  { order_direction, limit, hasManyRoles }: List,
  { beyond, inOrder, key }: InGrants,
): Sql {
  const max = sql.raw(pages * pageSize(limit))
  const direction = sql.raw(order_direction)
  return sql`heads as materialized (
    select head.* from me cross join unnest(me.principals) as p (principal) cross join lateral (
      select ${key} as key, h.cell_id, ${hasManyRoles ? sql`p.principal,` : sql.empty} row_number() over (${inOrder}) as nth
      from cell_grant h where h.principal = p.principal and ${beyond} ${inOrder} limit ${max}
    ) head
  ), frontier as materialized (
    select key, cell_id from heads where nth = ${max}
    order by key ${direction}, cell_id ${direction} limit 1
  )`
}

/** A relation of the merged grants in the order of the list. */
export const merged = ({ order_direction, hasManyRoles }: List): Sql => {
  const columns = sql`key, cell_id`
  const direction = sql.raw(order_direction)
  const until = sql.raw(order_direction === 'asc' ? '<=' : '>=')
  return sql`(
    select ${hasManyRoles ? sql`distinct on (${columns}) ${columns}, principal` : sql`distinct ${columns}`} from heads
    where not exists (select from frontier)
      or (key, cell_id) ${until} (select key, cell_id from frontier)
    order by key ${direction}, cell_id ${direction})`
}

/** An aggregate over the rows `c` of a page: whether it may lack cells from beyond the frontier. */
export const isShort = ({
  key,
  order_direction,
  limit,
}: List & { key: Sql }): Sql => sql`exists (select from frontier) and (
  count(*) <= ${limit} or bool_or((${key}, c.id) ${sql.raw(order_direction === 'asc' ? '>' : '<')} (select key, cell_id from frontier)))`

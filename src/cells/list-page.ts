import { type Sql, sql } from '../db/sql.ts'
import { admitting, me, tier } from './access.ts'
import { cellColumns } from './cells.ts'
import { grantJson } from './grants.ts'
import { branches, type ListInput } from './list-branches.ts'

export type { ListInput }

/** A page ends before the cell that would lift the sum of its data over this (contract 4, section 6.4). */
const pageBytesMax = 8_388_608

/**
 * A page size stands in the statement as a literal, since the planner costs `limit $n` as a tenth of the
 * table. Few sizes keep the statement texts few, and so the plans that each connection holds.
 */
const sizes = [20, 50, 100, 200]

/**
 * One statement: branches that an index delivers in order, each cut at the page, merged, then filtered by
 * the full predicate. A wrong branch could hide a row, never expose one. `data` is read for the returned
 * cells only. A row's `found` beyond the number of rows tells that a next page exists.
 */
export function listStatement(list: ListInput, after: [string, string] | null, isAdmin: boolean): Sql {
  const size = sql.raw((sizes.find((one) => one >= list.limit) ?? list.limit) + 1)
  const direction = sql.raw(list.order_direction)
  const found = sql.join(branches({ ...list, isAdmin, after, size }), ' union all ')
  return sql`
    with ${me(list.actor_id)}, found as (${found}), page as (
      select id, key, data_bytes from (select distinct id, key, data_bytes from found) f
      order by key ${direction}, id ${direction} limit ${size}
    ), measured as (
      select id, key, row_number() over w as n, sum(data_bytes) over w as bytes, count(*) over () as found
      from page window w as (order by key ${direction}, id ${direction})
    )
    select ${cellColumns}, m.key, m.found ${list.shared_with ? sql`, ${admittingGrants} as grants` : sql.empty}
    from measured m join cell c on c.id = m.id, me
    where m.n <= ${list.limit} and (m.n = 1 or m.bytes <= ${sql.raw(pageBytesMax)}) and ${tier.view}
    order by m.n`
}

/** The grants of the cell that admit the caller, and no others. */
const admittingGrants = sql`(
  select json_agg(${grantJson('g')} order by g.created_at, g.id) from ${admitting('c')})`

import { pageSize } from '../../core/page.ts'
import { jsonArray } from '../../db/json.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { admitting, me, principalsNamed, tiers, viaFirst } from '../access.ts'
import { cellText } from '../cells.ts'
import { grantText } from '../grants/grants.ts'
import {
  branches,
  type Caller,
  inGrants,
  isByHeads,
  isTwiceFound,
  type List,
  type ListInput,
  type Way,
} from './branches.ts'
import { all } from './filters.ts'
import { heads, isShort } from './heads.ts'
import { type After, grantOrdered, keyNames, ordered, orders, upTo } from './order.ts'

/**
 * The statement of `cell_list`. Each way in which cells become visible is a branch: it walks an index in the order
 * of the list, over rows the caller may view, until a page is full. The branches are merged and filtered by the
 * access rule once more. So a wrong branch can hide a row but never leak one, and hidden cells cost nothing.
 */

/** A page ends before the cell that would take the total size of its data over this. */
const pageBytesMax = 8_388_608
const max = sql.raw(pageBytesMax)
/** Max size of a page that is read as one text. The driver would copy a longer text repeatedly while it arrives. */
const textBytesMax = 1_048_576

const cell = cellText('c')
const foundTiers = tiers('f')
const foundTiersVia = tiers('f', viaFirst('f.via'))

export type ListPage = {
  /** JSON text: one cell per row with `cut`, else all cells and, if there is a next page, its first one. Null: none. */
  cells: string | null
  /** The grants that admit the caller, by cell, for `shared_with` only. */
  cell_grants?: string | null
  has_more: boolean
  /** Some cells were left out because they exceed their share of the text; `cut` returns them. */
  is_large?: boolean
  /** The page may lack cells that a way with more grants returns. */
  is_short?: boolean
  /** A grant of the caller leads to a place on the page, so a page read without grants may lack that cell. */
  is_granted?: boolean
}

/** The branches carry whole rows, so that nothing is read twice; `data` is written out for the returned cells only. */
export function listStatement(input: ListInput, after: After, caller: Caller, way: Way): Sql {
  const list = { ...input, ...caller, after, way, ...ordered({ ...input, after }, orders[input.order_by]) }
  const keys = list.order_by === 'path' ? ['path'] : [keyNames[list.order_by], 'id']
  const inOrder = sql.raw(`order by ${keys.map((key) => `${key} ${list.order_direction}`).join(', ')}`)
  const hasHeads = isByHeads(list)
  const distinct = isTwiceFound(list) ? sql`distinct on (${sql.raw(keys.join(', '))})` : sql.empty
  // `offset 0` keeps the access rule above the branches: its estimate would hide what their indexes cost.
  const found = sql`
    select ${distinct} * from (${sql.join(branches(list), ' union all ')}) found ${inOrder} offset 0`
  const page = sql`select f.* from (${found}) f, me where ${rule(list)} ${inOrder} limit ${list.limit + 1}::int`
  const ctes = sql`with ${me(list.actor_id, 'inline')} ${hasHeads ? sql`, ${heads(list, inGrants(list))}` : sql.empty}`
  const grants = list.shared_with && (list.hasManyRoles ? grantsOfNamed : grantsOfProbed)
  if (way === 'cut')
    return sql`${ctes}
      select ${cell} as cells, ${grants ? sql`${grants} as cell_grants,` : sql.empty} c.has_more
      from (${cut(page, inOrder, list.limit)}) c ${grants ? sql`, me` : sql.empty} order by c.n`
  const share = sql.raw(Math.floor(textBytesMax / pageSize(list.limit)))
  return sql`${ctes}
    select string_agg(case when c.data_bytes <= ${share} then ${cell} end, ',') as cells,
      ${grants ? sql`string_agg(${grants}, ',') as cell_grants,` : sql.empty}
      count(*) > ${list.limit} as has_more, bool_or(c.data_bytes > ${share}) as is_large
      ${hasHeads ? sql`, ${isShort(list)} as is_short` : sql.empty}
      ${way === 'ungranted' || caller.tellsGrants ? sql`, ${grantLeadsToPage(list)} as is_granted` : sql.empty}
    from (${page}) c ${grants ? sql`, me` : sql.empty}`
}

/**
 * The access rule, without the parts that the filters make redundant: setting up subqueries that never run takes 7 % of
 * the time.
 */
function rule({ actor_id, visibility, created_by, hasManyRoles, way }: List): Sql {
  const { live, owner, view } = hasManyRoles ? foundTiersVia : foundTiers
  if (way === 'ungranted') return sql`${live} and (f.visibility = 'public' or ${owner})`
  if (actor_id === null || visibility === 'public') return sql`${live} and f.visibility = 'public'`
  return created_by === actor_id ? sql`${live} and ${owner}` : view
}

/**
 * An aggregate over the rows `c` of a page: whether a grant of the caller leads to a place before its end. The order
 * makes it a probe of the index. Where few principals hold all grants, the planner expects one soon in the whole table.
 */
function grantLeadsToPage(list: List): Sql {
  const { beyond, inOrder } = grantOrdered(list)
  const last = sql.raw(list.order_direction === 'asc' ? 'max' : 'min')
  const isNear = upTo(list, sql`case when count(c.id) > ${list.limit} then ${last}(${list.key}) end`)
  return sql`exists (
    select from me cross join unnest(me.principals) as p (principal) cross join lateral (
      select from cell_grant h where ${all([sql`h.principal = p.principal`, beyond, isNear])} ${inOrder} limit 1
    ) one)`
}

const fits = (limit: number): Sql => sql`(m.n <= ${limit} and (m.n = 1 or m.bytes <= ${max}))`

/** As many rows as fit, and whether there are more. */
const cut = (page: Sql, inOrder: Sql, limit: number): Sql => sql`
  select * from (
    select m.*, ${fits(limit)} as fits, bool_or(not ${fits(limit)}) over () as has_more from (
      select *, row_number() over w as n, sum(data_bytes) over w as bytes from (${page}) page window w as (${inOrder})
    ) m where bytes - data_bytes <= ${max}
  ) m where fits`

/** Only those grants of the cell that admit the caller. */
const grantsOfCell = (principals?: string): Sql => sql`'"' || c.id || '":' || (
  select ${jsonArray(grantText('g'), sql`order by g.created_at, g.id`)} from ${admitting('c', principals)})`
const [grantsOfProbed, grantsOfNamed] = [grantsOfCell(), grantsOfCell(principalsNamed('c'))]

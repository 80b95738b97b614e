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
  isDone,
  isVisibility,
  type Key,
  type Page,
  shortWalk,
  walkMax,
} from './list-walk.ts'

type Visibility = 'public' | 'private'

/** Cells that grants give the caller, of these visibilities. */
export function granted(page: Page, visibilities: readonly Visibility[], isForeign: Sql): Sql {
  const conditions = visibilities.length > 1 ? [isForeign] : [isForeign, ...visibilities.map(isVisibility)]
  const isByIndex =
    page.order_by === 'created_at' &&
    [page.kind, page.created_by, page.path_prefix].every((it) => it === undefined)
  if (isByIndex) return byPrincipal(page, conditions)
  return byEither(page, visibilities, isForeign, byPrincipal(page, [isFew, ...conditions]))
}

const grantKey: Key = { key: sql`h.cell_created_at`, id: sql`h.cell_id` }

/** Principal by principal; by creation each walks its index only as far as the page, else all are looked up. */
function byPrincipal(page: Page, conditions: Sql[]): Sql {
  const key = page.order_by === 'created_at' ? grantKey : cellKey(page)
  return sql`(
    select one.id, one.key, one.data_bytes
    from me cross join unnest(me.principals) as p (principal) cross join lateral (
      select c.id, ${key.key} as key, c.data_bytes
      from cell_grant h
        cross join lateral (select ${columns} from cell c where c.id = h.cell_id offset 0) c
      where ${all([sql`h.principal = p.principal`, tier.live, ...conditions, ...filters(page), ...beyond(page, key)])}
      ${inOrder(page, key)} limit ${page.size}
    ) one)`
}

/** Whether the granted cells are looked up one by one. */
const isFew = sql`not (select is_done from walks_end)`

/**
 * Where very many cells are granted, looking up each is slow, and they are likely to be met soon in the order
 * of the page: that is tried first, over fewer cells than are granted, so that hidden ones among them never
 * are the larger part of the work. If that does not fill the page, they are looked up after all.
 */
function byEither(page: Page, visibilities: readonly Visibility[], isForeign: Sql, lookUp: Sql): Sql {
  const { created_by, kind, path_prefix } = page
  const isMany = sql`(select is_many from mine_count)`
  const indexed = (visibility: Visibility): Sql[] => [
    ...filters(path_prefix === undefined ? { created_by, kind } : { created_by }),
    isVisibility(visibility),
    ...(path_prefix === undefined ? [] : [hasPath]),
  ]
  // As a value and not as a condition, it is a look-up in a hash; else the planner might join.
  const isMine = sql`(c.id in (select id from mine)) is true`
  const rest = [isMany, isForeign, ...filters({ kind, path_prefix }), isMine]
  const name = (visibility: Visibility): Sql => sql.raw(`walk_${visibility}`)
  const walks = visibilities.map(
    (one) => sql`${name(one)} as materialized ${shortWalk(page, indexed(one), rest)}`,
  )
  const ends = visibilities.map((one) => isDone(page, indexed(one), sql`(select count(*) from ${name(one)})`))
  const found = visibilities.map(
    (one) => sql`select id, key, data_bytes from ${name(one)} where not ${isFew}`,
  )
  return sql`(
    with mine as materialized (
      select h.cell_id as id
      from me cross join unnest(me.principals) as p (principal) join cell_grant h on h.principal = p.principal
    ), mine_count as materialized (select count(*) > ${sql.raw(walkMax)} as is_many from mine),
    ${sql.join(walks, ', ')},
    walks_end as materialized (select ${all([isMany, ...ends])} as is_done)
    ${sql.join(found, ' union all ')}
    union all ${lookUp})`
}

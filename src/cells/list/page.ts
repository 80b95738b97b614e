import { keyset, type Order, pageSize } from '../../core/page.ts'
import { hasPrefix } from '../../db/prefix.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { admitting, me, tier } from '../access.ts'
import { cellColumns } from '../cells.ts'
import { grantJson } from '../grants/grants.ts'

/**
 * The statement of `cell_list`: each way in which cells become visible is a branch that walks an index in the order
 * of the list over rows the caller may see, as far as a page; the branches are merged and pass the access rule once
 * more. So a wrong branch may hide a row, but never show one, and hidden cells cost nothing.
 */

type Visibility = 'private' | 'public'

/** The filters after parsing; `ids` sorted and distinct. */
export type ListInput = {
  ids?: string[] | undefined
  kind?: string | undefined
  visibility?: Visibility | undefined
  created_by?: string | undefined
  path_prefix?: string | undefined
  shared_with?: 'me' | undefined
  order_by: 'created_at' | 'updated_at' | 'path'
  order_direction: 'asc' | 'desc'
  limit: number
  /** The acting actor; null for an anonymous caller. */
  actor_id: string | null
}

type After = Parameters<typeof keyset>[0]['after']
type List = ListInput & Ordered & { after: After; isAdmin: boolean }

/** A page ends before the cell that would lift the sum of its data over this. */
const pageBytesMax = 8_388_608

/** `data` is read for the returned cells alone. A row's `found` beyond the number of rows tells of a next page. */
export function listStatement(input: ListInput, after: After, isAdmin: boolean): Sql {
  const list = { ...input, after, isAdmin, ...ordered({ ...input, after }, orders[input.order_by]) }
  const direction = sql.raw(list.order_direction)
  return sql`
    with ${me(list.actor_id)}, found as (${sql.join(branches(list), ' union all ')}), page as (
      select id, key, data_bytes from (select distinct id, key, data_bytes from found) f
      order by key ${direction}, id ${direction} ${list.limited}
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

function branches(list: List): Sql[] {
  const { actor_id, isAdmin, visibility, created_by, shared_with, ids } = list
  const isForeign = sql`c.created_by is distinct from ${actor_id}::uuid`
  if (ids) return [named(list, ids, shared_with ? [isForeign, tier.held] : [])]
  if (shared_with) return [granted(list, visibility ? [visibility] : ['public', 'private'], isForeign)]
  const found = scopes(list).map((scope) => walk(list, inScope(list, scope)))
  const isGranted = !isAdmin && actor_id !== null && visibility !== 'public' && created_by !== actor_id
  if (isGranted) found.push(granted(list, ['private'], isForeign))
  return found.length > 0
    ? found
    : [sql`(select c.id, ${list.key} as key, c.data_bytes from cell c where false)`]
}

/** Cells that are visible together; indexes begin with what they have in common. */
type Scope = Pick<ListInput, 'visibility' | 'created_by'>

/** Public cells and one's own private ones; for an admin all. */
function scopes({ actor_id, isAdmin, visibility, created_by, order_by }: List): Scope[] {
  if (isAdmin && order_by === 'path' && created_by === undefined && visibility !== 'public')
    return [{ visibility }]
  const wanted = (['public', 'private'] as const).filter((one) => (visibility ?? one) === one)
  return wanted.flatMap((one): Scope[] => {
    if (isAdmin || one === 'public') return [{ visibility: one, created_by }]
    const isOwn = actor_id !== null && (created_by ?? actor_id) === actor_id
    return isOwn ? [{ visibility: one, created_by: actor_id }] : []
  })
}

/**
 * What the index of a scope has. By path there are two: on the audience of a cell, which is everybody or its owner,
 * and on all paths. That no path is empty is said only for the latter, which others would be led through hidden
 * cells by.
 */
function inScope({ kind, path_prefix, order_by }: List, { visibility, created_by }: Scope): Sql[] {
  if (order_by !== 'path') return filters({ visibility, created_by, kind })
  if (visibility === 'public')
    return [hasPath, isFor('public'), ...filters({ created_by, kind, path_prefix })]
  if (created_by !== undefined) return [hasPath, isFor(created_by), ...filters({ kind, path_prefix })]
  return [hasPath, sql`c.path <> ''`, ...filters({ visibility, kind, path_prefix })]
}

const hasPath = sql`c.path is not null`

/** As the index on it has it, letter by letter. */
const isFor = (audience: string): Sql =>
  sql`(case when c.visibility = 'public' then 'public' else coalesce(c.created_by::text, 'nobody') end collate "C")
    = ${audience}`

/** Cells by id: these are looked up, everything else filters them. */
const named = (list: List, ids: string[], more: Sql[]): Sql => sql`(
  select c.id, ${list.key} as key, c.data_bytes
  from (select ${columns} from cell c where c.id = any(${ids}::uuid[]) offset 0) c, me
  where ${all([tier.view, ...more, ...filters(list), list.beyond])} ${list.inOrder})`

/** Cells that grants give the caller, of these visibilities. */
function granted(list: List, visibilities: readonly Visibility[], isForeign: Sql): Sql {
  const conditions = [isForeign, ...(visibilities.length > 1 ? [] : visibilities.map(isVisibility))]
  const { kind, created_by, order_by } = list
  if (order_by === 'created_at' && kind === undefined && created_by === undefined)
    return byPrincipal(list, conditions)
  return byEither(list, visibilities, conditions)
}

/** Principal by principal; by creation each walks its index only as far as the page, else all are looked up. */
function byPrincipal(list: List, conditions: Sql[]): Sql {
  const { key, beyond, inOrder, limited } = list.order_by === 'created_at' ? ordered(list, grantOrder) : list
  return sql`(
    select one.id, one.key, one.data_bytes
    from me cross join unnest(me.principals) as p (principal) cross join lateral (
      select c.id, ${key} as key, c.data_bytes
      from cell_grant h
        cross join lateral (select ${columns} from cell c where c.id = h.cell_id offset 0) c
      where ${all([sql`h.principal = p.principal`, tier.live, ...conditions, ...filters(list), beyond])}
      ${inOrder} ${limited}
    ) one)`
}

/**
 * How far a walk goes that may find nothing. Under a prefix there are often fewer cells than are granted, and then a
 * short walk is the whole answer.
 */
export const walkMax = { created_at: 20_000, updated_at: 20_000, path: 8_000 }

/**
 * Where very many cells are granted, looking up each is slow, and they are likely to be met soon in the order
 * of the list: that is tried first, over fewer cells than are granted, so that hidden ones among them never
 * are the larger part of the work. If that does not fill the page, they are looked up after all.
 */
function byEither(list: List, visibilities: readonly Visibility[], conditions: Sql[]): Sql {
  const { created_by, kind, order_by } = list
  const most = sql.raw(walkMax[order_by])
  const isPrivate = visibilities.every((one) => one === 'private')
  const isMany = sql`(select is_many from mine_count)`
  // As a value and not as a condition, it is a look-up in a hash; else the planner might join.
  const isMine = sql`(c.id in (select id from mine)) is true`
  const rest = [isMany, isMine, ...conditions, ...filters({ created_by, kind })]
  const starts =
    order_by === 'path'
      ? // No index has paths by kind: it would be a filter before the end of the walk is reached.
        [inScope({ ...list, kind: undefined }, isPrivate ? { created_by } : {})]
      : visibilities.map((visibility) => inScope(list, { visibility, created_by }))
  const walks = starts.map((indexed, at) => {
    const name = sql.raw(`walk_${at}`)
    return {
      name,
      found: sql`${name} as materialized (
        select id, key, data_bytes from (${walked(list, indexed)} limit ${most}) c
        where ${all(rest)} ${list.limited})`,
      // The page is filled, or there was no more to walk.
      isDone: sql`((select count(*) from ${name}) >= ${sql.raw(pageSize(list.limit))}
        or not exists (${walked(list, indexed)} limit 1 offset ${most}))`,
    }
  })
  const isFew = sql`not (select is_done from walks_end)`
  return sql`(
    with mine as materialized (
      select h.cell_id as id
      from me cross join unnest(me.principals) as p (principal) join cell_grant h on h.principal = p.principal
    ), mine_count as materialized (select count(*) > ${most} as is_many from mine),
    ${sql.join(
      walks.map(({ found }) => found),
      ', ',
    )},
    walks_end as materialized (select ${all([isMany, ...walks.map(({ isDone }) => isDone)])} as is_done)
    ${sql.join(
      walks.map(({ name }) => sql`select id, key, data_bytes from ${name} where not ${isFew}`),
      ' union all ',
    )}
    union all ${byPrincipal(list, [isFew, ...conditions])})`
}

/** One page of live cells in the order of the list, from the index that begins with these conditions. */
const walk = (list: List, indexed: Sql[]): Sql =>
  sql`(select id, key, data_bytes from (${walked(list, indexed)} ${list.limited}) c)`

const walked = ({ key, beyond, inOrder }: List, indexed: Sql[]): Sql =>
  sql`select ${columns}, ${key} as key from cell c where ${all([tier.live, ...indexed, beyond])} ${inOrder}`

/** What filters and merge need of a cell; never `data`. */
const columns = sql`c.id, c.data_bytes, c.kind, c.visibility, c.path, c.created_by, c.created_at, c.changed_at,
  c.deleted_at`

const orders = {
  created_at: { 'c.created_at': 'timestamptz', 'c.id': 'uuid' },
  updated_at: { 'c.changed_at': 'timestamptz', 'c.id': 'uuid' },
  // Unique among live cells.
  path: { 'c.path': 'text' },
} as const satisfies Record<string, Order>

/** That of `created_at`, as the index of grants has it. */
const grantOrder: Order = { 'h.cell_created_at': 'timestamptz', 'h.cell_id': 'uuid' }

type Ordered = ReturnType<typeof keyset> & { key: Sql }

function ordered(list: ListInput & { after: After }, order: Order): Ordered {
  return { ...keyset(list, order, list.order_direction), key: sql.raw(Object.keys(order)[0] as string) }
}

const all = (conditions: readonly Sql[]): Sql => sql.join(conditions, ' and ')

const isVisibility = (visibility: Visibility): Sql => sql`c.visibility = ${sql.raw(`'${visibility}'`)}`

/** Only the filters that were given stand in the statement. */
function filters({ kind, visibility, created_by, path_prefix }: Partial<ListInput>): Sql[] {
  const given: Sql[] = []
  if (kind !== undefined) given.push(sql`c.kind = ${kind}`)
  if (visibility !== undefined) given.push(isVisibility(visibility))
  if (created_by !== undefined) given.push(sql`c.created_by = ${created_by}::uuid`)
  if (path_prefix !== undefined) given.push(hasPrefix(sql`c.path`, path_prefix))
  return given
}

import { pageSize } from '../../core/page.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { tier, tiersOfMany } from '../access.ts'
import { all, filters, isVisibility, type Visibility } from './filters.ts'
import { merged } from './heads.ts'
import { type After, grantOrdered, keyNames, type Ordered, upTo } from './order.ts'
import { columns, nobody, via, walk, walked, walkMax, walksFirst } from './walks.ts'

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

export type List = ListInput & Ordered & Caller & { after: After; way: Way }
/**
 * `hasManyRoles`: access is checked first by the principal in `via`, by which the cell was found; this would cost other
 * callers 4 %. `tellsGrants`: the page says whether the caller's grants contribute to it, as `ungranted` always does.
 */
export type Caller = { isAdmin: boolean; hasManyRoles: boolean; tellsGrants?: boolean | undefined }

/**
 * How a page is read. `ungranted` reads what the caller sees without grants, and whether some grant leads to a place on
 * the page. `heads` reads only the first grants of each principal, which nearly always suffice; `all` reads as many
 * grants as needed. These return one row. `cut` returns a row per cell and ends the page by size. It is for pages of
 * large cells only, because running sums and many rows are slow.
 */
export type Way = 'ungranted' | 'heads' | 'all' | 'cut'

const tierOfMany = tiersOfMany('c')

/** The ways in which cells become visible to the caller: each returns a page of them in the order of the list. */
export function branches(list: List): Sql[] {
  const { actor_id, visibility, shared_with, ids } = list
  const isForeign = sql`c.created_by is distinct from ${actor_id}::uuid`
  if (ids) {
    const { view, held } = list.hasManyRoles ? tierOfMany : tier
    return [named(list, ids, shared_with ? [view, isForeign, held] : [view])]
  }
  if (shared_with) return [granted(list, visibility ? [visibility] : ['public', 'private'], isForeign)]
  const found = scopes(list).map((scope) =>
    list.order_by === 'path' && scope.visibility === 'public' && scope.created_by !== undefined
      ? publicOf(list, scope.created_by)
      : walk(list, inScope(list, scope)),
  )
  if (isGranted(list) && list.way !== 'ungranted') found.push(granted(list, ['private'], isForeign))
  return found.length > 0
    ? found
    : [sql`(select ${columns(list)}${via(list, nobody)} from cell c where false)`]
}

/** Whether grants can make cells visible that nothing else does. */
const isGranted = ({ actor_id, isAdmin, visibility, created_by }: ListInput & Caller): boolean =>
  !isAdmin && actor_id !== null && visibility !== 'public' && created_by !== actor_id

/** Whether some cells of the list are found by the grants that lead to them. */
const startsAtGrants = (list: List): boolean =>
  list.ids === undefined && (list.shared_with !== undefined || isGranted(list))

/** Whether branches may return a cell twice, because grants to several principals of the caller may lead to it. */
export const isTwiceFound = (list: List): boolean =>
  list.way !== 'ungranted' && !isByHeads(list) && startsAtGrants(list)

export const isByHeads = (list: List): boolean =>
  list.way === 'heads' && hasGrantIndex(list) && startsAtGrants(list)

/** Whether cells that the caller sees without grants are likely to fill a page. */
export const mayBeUngranted = (list: ListInput & Caller): boolean =>
  isGranted(list) && hasGrantIndex(list) && !list.ids && !list.kind && !list.shared_with && !list.visibility

/** Whether an index on grants has the order of the list, so that its first grants probably fill a page. */
const hasGrantIndex = ({ order_by, created_by }: ListInput): boolean =>
  order_by !== 'updated_at' && created_by === undefined

/** A set of cells that are visible for the same reason; indexes start with the columns that they share. */
type Scope = Pick<ListInput, 'visibility' | 'created_by'>

/** Public cells and the caller's own private ones; for an admin, all cells. */
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
 * The conditions that match the index of a scope. There are two indexes by path: one by the audience of a cell,
 * which is everybody or its owner, and one of all paths. Only scopes for the latter say `path <> ''`; with it, the
 * planner might take that index for the others too and walk hidden cells.
 */
function inScope({ kind, path_prefix, order_by }: List, { visibility, created_by }: Scope): Sql[] {
  if (order_by !== 'path') return filters({ visibility, created_by, kind })
  if (visibility === 'public') return [hasPath, isFor('public'), ...filters({ kind, path_prefix })]
  if (created_by !== undefined) return [hasPath, isFor(created_by), ...filters({ kind, path_prefix })]
  return [hasPath, sql`c.path <> ''`, ...filters({ visibility, kind, path_prefix })]
}

const hasPath = sql`c.path is not null`

/** Must match the expression of the index exactly. */
const isFor = (audience: string): Sql =>
  sql`(case when c.visibility = 'public' then 'public' else coalesce(c.created_by::text, 'nobody') end collate "C")
    = ${audience}`

/** Cells by id: looks them up, then applies everything else as a filter. */
const named = (list: List, ids: string[], access: Sql[]): Sql => sql`(
  select ${columns(list)}${via(list, nobody)}
  from (select ${columns(list)} from cell c where c.id = any(${ids}::uuid[]) offset 0) c, me
  where ${all([...access, ...filters(list), list.beyond])} ${list.inOrder})`

/** Cells of these visibilities that the caller sees by grants. */
function granted(list: List, visibilities: readonly Visibility[], isForeign: Sql): Sql {
  const conditions = [isForeign, ...(visibilities.length > 1 ? [] : visibilities.map(isVisibility))]
  if (isByHeads(list)) return byHeads(list, conditions)
  // An index on cells may find the few cells that pass these filters sooner. No index has kinds by path.
  const isFewer = list.created_by !== undefined || (list.kind !== undefined && list.order_by === 'created_at')
  if (list.order_by === 'updated_at' || isFewer) return byEither(list, visibilities, conditions)
  return byPrincipal(list, conditions)
}

/** The merged heads, looked up until a page is full. */
const byHeads = (list: List, conditions: Sql[]): Sql => sql`(
  select ${columns(list, { id: sql`h.cell_id`, [keyNames[list.order_by]]: sql`h.key` })}${via(list, sql`h.principal`)}
  from ${merged(list)} h cross join lateral (select ${columns(list)} from cell c where c.id = h.cell_id offset 0) c
  where ${all([tier.live, ...conditions, ...filters(list)])}
  order by h.key ${sql.raw(list.order_direction)}, h.cell_id ${sql.raw(list.order_direction)} ${list.limited})`

/**
 * The order of the list in the columns of grants. Grants of cells after the end of a page that public cells fill are
 * left out.
 */
export function inGrants(list: List): Ordered {
  const inOrder = grantOrdered(list)
  if (list.shared_with || list.visibility || list.kind || !hasGrantIndex(list)) return inOrder
  return { ...inOrder, beyond: all([inOrder.beyond, upTo(list, lastPublic(list))]) }
}

/** The key at which public cells fill the page; null if they are too few. */
const lastPublic = (list: List): Sql => sql`(
  select ${sql.raw(keyNames[list.order_by])} from (
    ${walked(list, inScope(list, { visibility: 'public', created_by: list.created_by }))}
    limit 1 offset ${sql.raw(pageSize(list.limit) - 1)}
  ) c)`

/**
 * All grants of a principal, in the order of an index. Otherwise, where few principals hold nearly all grants, the
 * planner would read the whole table to find that this one has none.
 */
const grantsOf = sql`(
  select cell_id, principal from cell_grant where principal = p.principal order by cell_created_at, cell_id offset 0
) h`

/**
 * Per principal. Each principal's index is walked until a page is full; in the order of change, all its cells are
 * looked up.
 */
function byPrincipal(list: List, conditions: Sql[]): Sql {
  const readsAll = list.order_by === 'updated_at'
  const { key, beyond, inOrder, limited } = readsAll ? list : inGrants(list)
  return sql`(
    select one.*
    from me cross join unnest(me.principals) as p (principal) cross join lateral (
      select ${columns(list, { [keyNames[list.order_by]]: key })}${via(list, sql`p.principal`)}
      from ${readsAll ? grantsOf : sql`cell_grant h`}
        cross join lateral (select ${columns(list)} from cell c where c.id = h.cell_id offset 0) c
      where ${all([sql`h.principal = p.principal`, tier.live, ...conditions, ...filters(list), beyond])}
      ${inOrder} ${limited}
    ) one)`
}

/**
 * Max grants that are read before a walk. If there are more, and few principals hold them, the walk probes the grants
 * of each cell instead.
 */
export const readMax = 20_000
const probesMax = 4

/**
 * For callers with very many granted cells. A walk examines fewer cells than are granted, so that hidden cells are never
 * most of the work.
 */
function byEither(list: List, visibilities: readonly Visibility[], conditions: Sql[]): Sql {
  const { created_by, kind, order_by } = list
  // Walks end where public cells fill the page. Those of one owner have no index by path.
  const mayFill = !list.shared_with && !list.visibility && order_by !== 'path'
  const last = mayFill ? [sql`last_public as materialized (select ${lastPublic(list)} as key)`] : []
  const near = mayFill ? [upTo(list, sql`(select key from last_public)`, list.key)] : []
  const nearer = { ...list, beyond: all([list.beyond, ...near]) }
  const isPrivate = visibilities.every((one) => one === 'private')
  const isProbed = sql`(select count > ${sql.raw(readMax)} from mine_count) and cardinality(me.principals) <= ${sql.raw(probesMax)}`
  // `is true` makes it a hash lookup; as a plain condition the planner might turn it into a join.
  const isMine = sql`(c.id in (select id from mine)) is true`
  const isHeld = sql`case when ${isProbed} then ${tier.held} else ${isMine} end`
  const grants = sql`from me cross join unnest(me.principals) as p (principal) cross join lateral ${grantsOf}`
  return walksFirst(nearer, {
    first: [
      ...last,
      sql`mine as materialized (select h.cell_id as id ${grants})`,
      sql`mine_count as materialized (select count(*) from (select ${grants} limit ${sql.raw(readMax + 1)}) h)`,
    ],
    isMany: sql`(select count > ${sql.raw(walkMax)} from mine_count)`,
    starts:
      order_by === 'path'
        ? // No index has paths by kind: as a filter inside the walk, it would make the walk examine more cells.
          [inScope({ ...list, kind: undefined }, isPrivate ? { created_by } : {})]
        : visibilities.map((visibility) => inScope(list, { visibility, created_by })),
    rest: [...conditions, ...filters({ created_by, kind }), isHeld],
    otherwise: (isNeeded) => byPrincipal(list, [isNeeded, ...conditions]),
  })
}

/**
 * If an account has at least this many cells, its public ones are first searched along the paths, before all its cells
 * are examined.
 */
export const ownMax = 1_000

/**
 * The public cells of one owner by path, for which there is no index. The usage of its account bounds how many there
 * are.
 */
function publicOf(list: List, created_by: string): Sql {
  const { kind, path_prefix } = list
  const own = all([tier.live, ...filters({ visibility: 'public', created_by })])
  return walksFirst(list, {
    first: [
      sql`usage as materialized (
        select coalesce(sum(cells), 0) > ${sql.raw(ownMax)} as is_many from cell_usage
        where account_id = (select account_id from actor where id = ${created_by}::uuid))`,
    ],
    isMany: sql`(select is_many from usage)`,
    starts: [inScope({ ...list, kind: undefined }, { visibility: 'public' })],
    rest: filters({ created_by, kind }),
    otherwise: (isNeeded) => sql`(
      select ${columns(list)}${via(list, nobody)}
      from (select ${columns(list)} from cell c where ${own} and ${isNeeded} offset 0) c
      where ${all([hasPath, ...filters({ kind, path_prefix }), list.beyond])} ${list.inOrder} ${list.limited})`,
  })
}

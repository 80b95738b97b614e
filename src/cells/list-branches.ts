import { type Sql, sql } from '../db/sql.ts'
import { tier } from './access.ts'

/** The filters of `cell_list` after parsing; `ids` sorted and distinct. */
export type ListInput = {
  ids?: string[] | undefined
  kind?: string | undefined
  visibility?: 'private' | 'public' | undefined
  created_by?: string | undefined
  path_prefix?: string | undefined
  shared_with?: 'me' | undefined
  order_by: 'created_at' | 'updated_at'
  order_direction: 'asc' | 'desc'
  limit: number
  /** The acting actor; null for an anonymous caller. */
  actor_id: string | null
}

/** A list with its cursor, and how many rows of each branch a page takes at most. */
type Page = ListInput & { isAdmin: boolean; after: [string, string] | null; size: Sql }

/**
 * The sources of a page: public, own, granted; both visibilities for an admin. Each one is tied to an index
 * that holds only rows the caller may see. A planner free to choose takes the one on `kind` or `path` when
 * statistics favour it, and walks the hidden cells of others.
 */
export function branches(page: Page): Sql[] {
  const { actor_id, visibility, shared_with, created_by, isAdmin, ids } = page
  const isForeign = sql`c.created_by is distinct from ${actor_id}::uuid`
  if (ids) return [named(page, ids, shared_with ? [isForeign, tier.held] : [])]
  if (shared_with) return [granted(page, [isForeign])]
  const open = (['public', 'private'] as const).filter(
    (one) => (visibility ?? one) === one && (isAdmin || one === 'public'),
  )
  const parts = open.map((one) => ofVisibility(page, one))
  if (!isAdmin && actor_id !== null && visibility !== 'public') {
    if ((created_by ?? actor_id) === actor_id) parts.push(ofCreator(page, actor_id, 'private'))
    if (created_by !== actor_id) parts.push(granted(page, [isForeign, sql`c.visibility = 'private'`]))
  }
  return parts.length > 0 ? parts : [nothing]
}

const nothing = sql`select c.id, c.created_at as key, c.data_bytes from cell c where false`

/** What filters and merge need of a cell; never `data`. */
const columns = sql`c.id, c.data_bytes, c.kind, c.visibility, c.path, c.created_by, c.created_at, c.changed_at,
  c.deleted_at`

/** Cells by id: these are looked up, everything else filters them. */
const named = (page: Page, ids: string[], more: Sql[]): Sql => sql`(
  select c.id, ${cellKey(page).key} as key, c.data_bytes
  from (select ${columns} from cell c where c.id = any(${ids}::uuid[]) offset 0) c, me
  where ${all([tier.view, ...more, ...filters(page), ...beyond(page)])} ${inOrder(page)})`

function ofVisibility(page: Page, visibility: string): Sql {
  const { created_by, kind, path_prefix } = page
  if (created_by !== undefined) return ofCreator(page, created_by, visibility)
  const indexed = [isVisibility(visibility), ...filters({ kind })]
  return path_prefix === undefined ? walk(page, indexed, []) : underPrefix(page, path_prefix, indexed)
}

const ofCreator = (page: Page, created_by: string, visibility: string): Sql =>
  walk(
    page,
    [sql`c.created_by = ${created_by}::uuid`, isVisibility(visibility)],
    filters({ kind: page.kind, path_prefix: page.path_prefix }),
  )

const isVisibility = (visibility: string): Sql => sql`c.visibility = ${sql.raw(`'${visibility}'`)}`

/** Cells in the order of the page, from the index that begins with `indexed`; `rest` thins them out. */
function walk(page: Page, indexed: Sql[], rest: Sql[]): Sql {
  const ordered = sql`select ${columns}, ${cellKey(page).key} as key from cell c
    where ${all([tier.live, ...indexed, ...beyond(page)])} ${inOrder(page)}`
  if (rest.length === 0) return sql`(select id, key, data_bytes from (${ordered} limit ${page.size}) c)`
  // `offset 0` keeps `rest` out of the choice of the index; filter and limit leave the order as it comes.
  return sql`(select id, key, data_bytes from (${ordered} offset 0) c where ${all(rest)} limit ${page.size})`
}

/** Up to so many matches of a prefix are sorted; where there are more, walking in order soon fills a page. */
const sortedMax = 5000

/** Cells under a path prefix: from the path index where few match, else by the order of the page. */
function underPrefix(page: Page, path_prefix: string, indexed: Sql[]): Sql {
  const [visibility] = indexed as [Sql]
  const max = sql.raw(sortedMax)
  return sql`(
    with matching as materialized (
      select ${columns} from cell c where ${all([tier.live, visibility, ...filters({ path_prefix })])}
      order by c.path limit ${max} + 1
    ), amount as materialized (select count(*) > ${max} as is_many from matching)
    (select c.id, ${cellKey(page).key} as key, c.data_bytes from matching c
     where ${all([sql`not (select is_many from amount)`, ...indexed, ...beyond(page)])} ${inOrder(page)}
     limit ${page.size})
    union all
    ${walk(page, indexed, [sql`(select is_many from amount)`, ...filters({ path_prefix })])})`
}

/** Granted cells, principal by principal; by creation each walks its index only as far as the page. */
function granted(page: Page, conditions: Sql[]): Sql {
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

/** What a list is ordered by: a moment, then the id. */
type Key = { key: Sql; id: Sql }

const cellKey = ({ order_by }: ListInput): Key => ({
  key: sql.raw(order_by === 'created_at' ? 'c.created_at' : 'c.changed_at'),
  id: sql`c.id`,
})
const grantKey: Key = { key: sql`h.cell_created_at`, id: sql`h.cell_id` }

function inOrder(page: Page, { key, id }: Key = cellKey(page)): Sql {
  const direction = sql.raw(page.order_direction)
  return sql`order by ${key} ${direction}, ${id} ${direction}`
}

function beyond(page: Page, { key, id }: Key = cellKey(page)): Sql[] {
  if (!page.after) return []
  const sign = sql.raw(page.order_direction === 'asc' ? '>' : '<')
  return [sql`(${key}, ${id}) ${sign} (${page.after[0]}::timestamptz, ${page.after[1]}::uuid)`]
}

const all = (conditions: readonly Sql[]): Sql => sql.join(conditions, ' and ')

/** Only the filters that were given stand in the statement. */
function filters({ kind, visibility, created_by, path_prefix }: Partial<ListInput>): Sql[] {
  const given: Sql[] = []
  if (kind !== undefined) given.push(sql`c.kind = ${kind}`)
  if (visibility !== undefined) given.push(isVisibility(visibility))
  if (created_by !== undefined) given.push(sql`c.created_by = ${created_by}::uuid`)
  if (path_prefix !== undefined) {
    const end = afterPrefix(path_prefix)
    given.push(sql`c.path >= ${path_prefix}`)
    if (end !== undefined) given.push(sql`c.path < ${end}`)
  }
  return given
}

/** The least text, in byte order, above every text with this prefix; undefined where there is none. */
export function afterPrefix(prefix: string): string | undefined {
  const points = [...prefix]
  while (points.length > 0) {
    const last = (points.pop() as string).codePointAt(0) as number
    // Byte order of UTF-8 is the order of code points; surrogates are none.
    if (last < 0x10ffff) return points.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1)
  }
  return undefined
}

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
export type Page = ListInput & { isAdmin: boolean; after: [string, string] | null; size: Sql }

/** What filters and merge need of a cell; never `data`. */
export const columns = sql`c.id, c.data_bytes, c.kind, c.visibility, c.path, c.created_by, c.created_at, c.changed_at,
  c.deleted_at`

/** Cells in the order of the page, from the index that begins with `indexed`. */
export const walk = (page: Page, indexed: Sql[]): Sql =>
  sql`(select id, key, data_bytes from (${ordered(page, indexed)} limit ${page.size}) c)`

const ordered = (page: Page, indexed: Sql[]): Sql => sql`
  select ${columns}, ${cellKey(page).key} as key ${from(page, indexed)}`

const from = (page: Page, indexed: Sql[]): Sql => sql`
  from cell c where ${all([tier.live, ...indexed, ...beyond(page)])} ${inOrder(page)}`

/** How far a walk goes that may find nothing. */
export const walkMax = 20_000

/** A walk that gives up after `walkMax` cells. */
export const shortWalk = (page: Page, indexed: Sql[], rest: Sql[]): Sql => sql`(
  select id, key, data_bytes from (${ordered(page, indexed)} limit ${sql.raw(walkMax)}) c
  where ${all(rest)} limit ${page.size})`

/** True where a walk that found so many has filled the page or come to its end, so that it did not give up. */
export const isDone = (page: Page, indexed: Sql[], found: Sql): Sql => sql`(
  ${found} >= ${page.size} or not exists (select ${from(page, indexed)} limit 1 offset ${sql.raw(walkMax)}))`

/** What a list is ordered by: a moment, then the id. */
export type Key = { key: Sql; id: Sql }

export const cellKey = ({ order_by }: ListInput): Key => ({
  key: sql.raw(order_by === 'created_at' ? 'c.created_at' : 'c.changed_at'),
  id: sql`c.id`,
})

export function inOrder(page: Page, { key, id }: Key = cellKey(page)): Sql {
  const direction = sql.raw(page.order_direction)
  return sql`order by ${key} ${direction}, ${id} ${direction}`
}

export function beyond(page: Page, { key, id }: Key = cellKey(page)): Sql[] {
  if (!page.after) return []
  const sign = sql.raw(page.order_direction === 'asc' ? '>' : '<')
  return [sql`(${key}, ${id}) ${sign} (${page.after[0]}::timestamptz, ${page.after[1]}::uuid)`]
}

export const all = (conditions: readonly Sql[]): Sql => sql.join(conditions, ' and ')

export const isVisibility = (visibility: string): Sql => sql`c.visibility = ${sql.raw(`'${visibility}'`)}`

/** What the partial indexes of cells with a path ask for. */
export const hasPath = sql`c.path is not null`

/** Only the filters that were given stand in the statement. */
export function filters({ kind, visibility, created_by, path_prefix }: Partial<ListInput>): Sql[] {
  const given: Sql[] = []
  if (kind !== undefined) given.push(sql`c.kind = ${kind}`)
  if (visibility !== undefined) given.push(isVisibility(visibility))
  if (created_by !== undefined) given.push(sql`c.created_by = ${created_by}::uuid`)
  if (path_prefix !== undefined) {
    const end = afterPrefix(path_prefix)
    // By the subqueries the planner knows no prefix from another, and keeps one plan: to make one takes longer
    // than most pages do.
    given.push(sql`c.path >= (select ${path_prefix}::text)`)
    if (end !== undefined) given.push(sql`c.path < (select ${end}::text)`)
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

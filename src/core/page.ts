import { type Sql, sql } from '../db/sql.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { CursorText, Limit } from '../wire/types.ts'
import type { App } from './app.ts'
import type { CursorKey } from './cursor.ts'

/** The input keys of a paged list. */
export const pageInput = (max = 200, defaultLimit = 50) => ({
  limit: Limit(max, defaultLimit),
  cursor: CursorText,
})

export type Page = {
  limit: number
  /** The key of the last row of the previous page; null on the first page. */
  after: CursorKey | null
  binding: string
}

/**
 * Reads the cursor of a page. It is bound to the method, the acting actor and every filter, which are always listed in
 * the same order; any other cursor is `invalid_cursor`. Call it in `refine`, since a bad cursor is reported like a
 * schema failure.
 */
export function openPage(
  app: App,
  method: string,
  bound: Readonly<Record<string, unknown>>,
  { limit, cursor }: { limit: number; cursor?: string | null | undefined },
): Page {
  const binding = `${method} ${JSON.stringify(bound)}`
  const after = cursor === null || cursor === undefined ? null : app.cursors.read(binding, cursor)
  if (after === undefined) throw refusal('invalid_params', { issues: [issue(['cursor'], 'invalid_cursor')] })
  return { limit, after, binding }
}

/** Cuts the rows to the limit; if any were cut, makes the cursor that continues after the last one kept. */
export function closePage<T>(
  app: App,
  page: Page,
  rows: readonly T[],
  keyOf: (row: T) => CursorKey,
): { rows: T[]; next_cursor: string | null } {
  const kept = rows.slice(0, page.limit)
  const last = kept.at(-1)
  const hasMore = rows.length > page.limit && last !== undefined
  return { rows: kept, next_cursor: hasMore ? app.cursors.write(page.binding, keyOf(last)) : null }
}

/**
 * The same for a search that examines a bounded number of rows. Its last row need not match; it may only mark where the
 * next page begins.
 */
export function closeWalk<T extends { is_match: boolean; is_end: boolean }>(
  app: App,
  page: Page,
  walked: readonly T[],
  keyOf: (row: T) => CursorKey,
): { rows: T[]; next_cursor: string | null } {
  const end = walked.at(-1)
  const matches = walked.filter(({ is_match }) => is_match)
  const { rows, next_cursor } = closePage(app, page, matches, keyOf)
  return {
    rows,
    next_cursor: next_cursor ?? (end?.is_end ? app.cursors.write(page.binding, keyOf(end)) : null),
  }
}

/** Page sizes used in statements. They are few, so that each connection caches few prepared plans. */
const sizes = [20, 50, 100, 200, 500]

/** How many rows a statement reads for a page: `limit` rounded up, plus one. `closePage` cuts them. */
export const pageSize = (limit: number): number => (sizes.find((size) => size >= limit) ?? limit) + 1

/** The columns that a list is ordered by, with their types; together they are unique. */
export type Order = Readonly<Record<string, 'timestamptz' | 'uuid' | 'text'>>

/**
 * The parts of the statement of a page: its condition, order and limit. The limit is a literal, because the
 * planner estimates `limit $n` as a tenth of the table. `after` may have the first columns alone.
 */
export function keyset(
  { after, limit }: { after: readonly unknown[] | null; limit: number },
  order: Order,
  direction: 'asc' | 'desc' = 'asc',
): { beyond: Sql; inOrder: Sql; limited: Sql } {
  const columns = Object.keys(order)
  const list = (texts: readonly string[]): Sql => sql.raw(texts.join(', '))
  const types = Object.values(order)
  const values = after?.map((value, at) => sql`${value}::${sql.raw(types[at] as string)}`) ?? []
  const sign = sql.raw(direction === 'asc' ? '>' : '<')
  return {
    beyond: after
      ? sql`(${list(columns.slice(0, after.length))}) ${sign} (${sql.join(values, ', ')})`
      : sql`true`,
    inOrder: sql`order by ${list(columns.map((column) => `${column} ${direction}`))}`,
    limited: sql`limit ${sql.raw(pageSize(limit))}`,
  }
}

import { type Sql, sql } from '../db/sql.ts'
import { refusal } from '../errors.ts'
import { issue } from '../wire/issues.ts'
import { CursorText, Limit } from '../wire/types.ts'
import type { App } from './app.ts'
import type { CursorKey } from './cursor.ts'

/** The input keys of a paged list. */
export const pageInput = (max = 200, standard = 50) => ({ limit: Limit(max, standard), cursor: CursorText })

export type Page = {
  limit: number
  /** The key of the last row of the page before; null on the first page. */
  after: CursorKey | null
  binding: string
}

/**
 * Reads a page's cursor, which is bound to the method, the acting actor and every filter; a foreign or
 * changed one is `invalid_cursor`. Belongs into `refine`, since it is judged with the schema.
 */
export function openPage(
  app: App,
  method: string,
  bound: Readonly<Record<string, unknown>>,
  { limit, cursor }: { limit: number; cursor?: string | null | undefined },
): Page {
  const binding = `${method} ${JSON.stringify(bound, Object.keys(bound).sort())}`
  const after = cursor === null || cursor === undefined ? null : app.cursors.read(binding, cursor)
  if (after === undefined) throw refusal('invalid_params', { issues: [issue(['cursor'], 'invalid_cursor')] })
  return { limit, after, binding }
}

/** Cuts the one row more that was read, and makes the cursor that goes on after the last one kept. */
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

/** Page sizes that stand in statements: few, so that the texts are few, and so the plans that connections hold. */
const sizes = [20, 50, 100, 200, 500]

/** How many rows a statement reads for a page of `limit`: one more, and rounded up. `closePage` cuts them. */
export const pageSize = (limit: number): number => (sizes.find((size) => size >= limit) ?? limit) + 1

/** What a list is ordered by: columns and their types, unique together, in one direction. */
export type Order = Readonly<Record<string, 'timestamptz' | 'uuid' | 'text'>>

/**
 * The parts of a page's statement: rows beyond the cursor, in order, at most so many. The limit is a literal, since
 * the planner costs `limit $n` as a tenth of the table.
 */
export function keyset(
  { after, limit }: { after: readonly unknown[] | null; limit: number },
  order: Order,
  direction: 'asc' | 'desc' = 'asc',
): { beyond: Sql; inOrder: Sql; limited: Sql } {
  const columns = Object.keys(order)
  const list = (texts: readonly string[]): Sql => sql.raw(texts.join(', '))
  const values = Object.values(order).map((type, at) => sql`${after?.[at]}::${sql.raw(type)}`)
  const sign = sql.raw(direction === 'asc' ? '>' : '<')
  return {
    beyond: after ? sql`(${list(columns)}) ${sign} (${sql.join(values, ', ')})` : sql`true`,
    inOrder: sql`order by ${list(columns.map((column) => `${column} ${direction}`))}`,
    limited: sql`limit ${sql.raw(pageSize(limit))}`,
  }
}

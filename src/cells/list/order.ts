import { keyset, type Order } from '../../core/page.ts'
import { hasPrefix } from '../../db/prefix.ts'
import { type Sql, sql } from '../../db/sql.ts'

/** The orders of a list. */

type Page = Parameters<typeof keyset>[0] & { order_direction: 'asc' | 'desc' }
export type After = Page['after']

export const orders = {
  created_at: { 'c.created_at': 'timestamptz', 'c.id': 'uuid' },
  updated_at: { 'c.changed_at': 'timestamptz', 'c.id': 'uuid' },
  // Unique among live cells.
  path: { 'c.path': 'text' },
} as const satisfies Record<string, Order>

/** The first column of each order; only `path` is unique without a second one. */
export const keyNames = { created_at: 'created_at', updated_at: 'changed_at', path: 'path' } as const

export type Ordered = ReturnType<typeof keyset> & { key: Sql }

export function ordered(list: Page, order: Order): Ordered {
  return { ...keyset(list, order, list.order_direction), key: sql.raw(Object.keys(order)[0] as string) }
}

type InGrants = { order_by: keyof typeof orders; order_direction: 'asc' | 'desc' }

/** The first column of the order in `cell_grant h`, which has indexed copies of two columns of the cell. */
const grantKey = ({ order_by }: InGrants): string =>
  order_by === 'path' ? 'h.cell_path' : 'h.cell_created_at'

/** The order of a list (except by `updated_at`) and its prefix, in the columns of `cell_grant h`. */
export function grantOrdered(list: Page & InGrants & { path_prefix?: string | undefined }): Ordered {
  const { path_prefix } = list
  const type = list.order_by === 'path' ? 'text' : 'timestamptz'
  const found = ordered(list, { [grantKey(list)]: type, 'h.cell_id': 'uuid' })
  if (path_prefix === undefined) return found
  return { ...found, beyond: sql`${found.beyond} and ${hasPrefix(found.key, path_prefix)}` }
}

/**
 * A condition on `cell_grant h`, or on another `key`: its cell does not come after the key `last`; true for every cell
 * if `last` is null.
 */
export function upTo(list: InGrants, last: Sql, key: Sql = sql.raw(grantKey(list))): Sql {
  const isAscending = list.order_direction === 'asc'
  const ends = list.order_by === 'path' ? ["''", 'repeat(chr(1114111), 256)'] : ["'-infinity'", "'infinity'"]
  const end = sql.raw(ends[isAscending ? 1 : 0] as string)
  return sql`${key} ${sql.raw(isAscending ? '<=' : '>=')} coalesce(${last}, ${end})`
}

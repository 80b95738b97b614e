import { keyset, type Order } from '../../core/page.ts'
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

/** The order by `created_at`, in the columns of the index on grants. */
export const grantOrder: Order = { 'h.cell_created_at': 'timestamptz', 'h.cell_id': 'uuid' }

export type Ordered = ReturnType<typeof keyset> & { key: Sql }

export function ordered(list: Page, order: Order): Ordered {
  return { ...keyset(list, order, list.order_direction), key: sql.raw(Object.keys(order)[0] as string) }
}

import type { App } from '../core/app.ts'
import { closePage, type Page, pageSize } from '../core/page.ts'
import { type Queryable, sql } from '../db/db.ts'
import { me, tier } from './access.ts'
import { type Edges, edgeOrder, visibleEdges } from './edges.ts'

/** Bounds of a page of edges (contract 4, section 7.1). */
export const edgePage = { max: 500, standard: 100 }

/**
 * One page of the edges that belong to a cell (`from`) or lead to it (`to`); undefined where the caller may
 * not view that cell. One statement, which says by a row without an edge that there is none to show.
 */
export async function readEdges<T extends Record<string, string>>(
  { app, db, actor_id }: { app: App; db: Pick<Queryable, 'rows'>; actor_id: string },
  edges: Edges,
  { from, to, page }: { from: string | undefined; to: string | undefined; page: Page },
): Promise<{ rows: T[]; next_cursor: string | null } | undefined> {
  const isReverse = from === undefined
  const order = edgeOrder(edges, isReverse)
  const walk = { anchor: sql`anchor.id`, isReverse, after: page.after, size: pageSize(page.limit) }
  const found = await db.rows<T | { [K in keyof T]: null }>(sql`
    with ${me(actor_id)}, anchor as (
      select c.id from cell c, me where c.id = ${from ?? to}::uuid and ${tier.view}
    )
    select e.* from anchor left join lateral (${visibleEdges(edges, walk)}) e on true
    order by ${sql.raw(order.map((name) => `e.${name}`).join(', '))}`)
  if (found.length === 0) return undefined
  const rows = found.filter((row): row is T => row[edges.key] !== null)
  return closePage(app, page, rows, (row) => order.map((name) => row[name] as string))
}

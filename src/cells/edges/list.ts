import type { App } from '../../core/app.ts'
import { closePage, type Page, pageSize } from '../../core/page.ts'
import { type Queryable, sql } from '../../db/db.ts'
import { me, tier } from '../access.ts'
import { type Edges, edgeOrder, visibleEdges } from './edges.ts'

/** Page sizes of the edge lists. */
export const edgePage = { max: 500, default: 100 }

/**
 * One page of the edges that belong to a cell (`from`) or lead to it (`to`); undefined if the caller may not
 * view that cell. One statement reads both: a visible cell without edges gives one row of nulls. A page ends early
 * when a call has examined its max of edges. Its cursor then names the edge at which the next page begins;
 * cursors are sealed, because that edge may lead to a hidden cell.
 */
export async function readEdges<T extends Record<string, string>>(
  { app, db, actor_id }: { app: App; db: Pick<Queryable, 'rows'>; actor_id: string },
  edges: Edges,
  { from, to, page }: { from: string | undefined; to: string | undefined; page: Page },
): Promise<{ rows: T[]; next_cursor: string | null } | undefined> {
  const isReverse = from === undefined
  const order = edgeOrder(edges, isReverse)
  const isFrom = page.after?.at(-1) === goOn
  const walk = { isReverse, after: page.after, isFrom, size: pageSize(page.limit) }
  const found = await db.rows<T | { [K in keyof T]: null }>(sql`
    with ${me(actor_id)}, anchor as (
      select c.id from cell c, me where c.id = ${from ?? to}::uuid and ${tier.view}
    )
    select e.* from anchor left join lateral (${visibleEdges(edges, { anchor: sql`anchor.id`, ...walk })}) e on true
    order by ${sql.raw(order.map((name) => `e.${name}`).join(', '))}`)
  if (found.length === 0) return undefined
  const keyOf = (row: T): string[] => order.map((name) => row[name] as string)
  const rows = found.filter((row): row is T => row[edges.key] !== null)
  const end = rows.at(-1)?.[edges.to] === null ? rows.pop() : undefined
  const closed = closePage(app, page, rows, keyOf)
  if (closed.next_cursor !== null || !end) return closed
  return { rows: closed.rows, next_cursor: app.cursors.seal(page.binding, [...keyOf(end), goOn]) }
}

/** Last part of a cursor key: the edge itself has not been shown yet. */
const goOn = true

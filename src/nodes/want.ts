import { z } from 'zod'
import type { Fail } from '../core/mutate.ts'
import type { Operating } from '../core/operate.ts'
import { sql } from '../db/db.ts'

export const NodeId = z.string().regex(/^[0-9a-f]{16}$/)

const events = { drain: 'node_drain', run: 'node_resume' } as const

/** Records what is wanted of a node, which learns of it from the audit row. Repeating it changes nothing. */
export async function want(
  wanted: keyof typeof events,
  node_id: string,
  { db, audit, detail, fail }: Pick<Operating, 'db' | 'audit' | 'detail'> & { fail: Fail<'node_not_found'> },
): Promise<{ changed: boolean }> {
  const node = await db.first<{ wanted: string }>(
    sql`select wanted from node where id = ${node_id} for update`,
  )
  if (!node) throw fail('node_not_found')
  if (node.wanted === wanted) return { changed: false }
  await db.run(sql`update node set wanted = ${wanted} where id = ${node_id}`)
  audit(events[wanted], { node_id, via: detail.via })
  return { changed: true }
}

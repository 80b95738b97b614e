import type pg from 'pg'
import { hasTable } from './records.ts'

/** A node that was not seen for this long is silent, as is one that was seen before the clock was set back. */
export const aliveMs = 15_000
const tolerance = `interval '${aliveMs} ms'`
/** SQL of a row of `node`. */
export const isAlive = `seen_at between now() - ${tolerance} and now() + ${tolerance}`

/** The recently seen nodes, also of a database from before there was a table of them. */
export async function aliveNodes(client: pg.Client): Promise<{ name: string; version: string }[]> {
  if (!(await hasTable(client, 'node'))) return []
  const { rows } = await client.query<{ name: string; version: string }>(
    `select name, version from node where ${isAlive} order by name`,
  )
  return rows
}

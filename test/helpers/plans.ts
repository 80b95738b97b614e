import pg from 'pg'
import { clientConfig } from '../../src/db/servers/connection.ts'
import { planning } from '../../src/db/servers/session-settings.ts'

type Sent = { text: string; values: unknown[] }
type Node = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Node[]
}

/** The work of a statement; each value is the worse of its custom and its generic plan. */
export type Work = {
  /** Pages of tables and indexes read. */
  pages: number
  /** Rows that scans fetched, including those that a filter then dropped. */
  rows: Record<string, number>
  /** Tables read from end to end. */
  scanned: string[]
  /** Indexes used. */
  indexes: string[]
}

/**
 * Runs a call and explains the last statement that it sent. Not for writes: the statement is executed again.
 */
export async function workOf(databaseUrl: string, call: () => Promise<unknown>): Promise<Work> {
  const sent = await lastStatement(call)
  const client = await explainerOf(databaseUrl)
  const work: Work = { pages: 0, rows: {}, scanned: [], indexes: [] }
  for await (const { rows } of plansOf(client, sent, 'analyze, buffers, format json')) {
    const root: Node = rows[0]['QUERY PLAN'][0].Plan
    const counted: Record<string, number> = {}
    count(root, counted, work)
    work.pages = Math.max(work.pages, root['Shared Hit Blocks'] + root['Shared Read Blocks'])
    for (const [table, n] of Object.entries(counted)) work.rows[table] = Math.max(work.rows[table] ?? 0, n)
  }
  return work
}

const explainers = new Map<string, pg.Client>()

/** A connection that is kept until its database is dropped: a new one would read the catalogs for its first plan. */
async function explainerOf(databaseUrl: string): Promise<pg.Client> {
  const kept = explainers.get(databaseUrl)
  if (kept) return kept
  const client = new pg.Client(clientConfig({ connectionString: databaseUrl }, planning))
  client.on('error', () => explainers.delete(databaseUrl))
  await client.connect()
  explainers.set(databaseUrl, client)
  return client
}

/** Entries of a bitmap index scan count as rows of its table. */
function count(node: Node, rows: Record<string, number>, work: Work, bitmapOf?: string): void {
  const { 'Node Type': type, 'Actual Loops': loops, 'Rows Removed by Filter': removed = 0 } = node
  // A partition of the audit log counts as the log.
  const table = (node['Relation Name'] ?? (type === 'Bitmap Index Scan' ? bitmapOf : undefined))?.replace(
    /_\d+$/,
    '',
  )
  if (table !== undefined && loops > 0) {
    if (type === 'Seq Scan' && !work.scanned.includes(table)) work.scanned.push(table)
    const index = node['Index Name']
    if (index !== undefined && !work.indexes.includes(index)) work.indexes.push(index)
    rows[table] = Math.round((rows[table] ?? 0) + (node['Actual Rows'] + removed) * loops)
  }
  for (const inner of node.Plans ?? []) count(inner, rows, work, node['Relation Name'] ?? bitmapOf)
}

/** Explains a statement by the plan for its values, and by the generic one that PostgreSQL may choose when prepared. */
export async function* plansOf(client: pg.Client, { text, values }: Sent, options: string) {
  for (const mode of ['force_custom_plan', 'force_generic_plan']) {
    await client.query(`set plan_cache_mode = ${mode}`)
    await client.query(`prepare explained as ${text}`)
    const given = values.length > 0 ? `(${values.map(literal).join(', ')})` : ''
    const { rows } = await client.query(`explain (${options}) execute explained${given}`)
    await client.query('deallocate explained')
    yield { mode, rows }
  }
  await client.query('reset plan_cache_mode')
}

/** The last statement that a call sends, as the driver got it: exactly the one that ran. */
export async function lastStatement(call: () => Promise<unknown>): Promise<Sent> {
  const { prototype } = pg.Client
  const query = prototype.query
  let last: Sent | undefined
  prototype.query = function (this: pg.Client, sent: Sent, ...rest: unknown[]) {
    // Plain strings are BEGIN and COMMIT.
    if (typeof sent === 'object') last = sent
    return Reflect.apply(query, this, [sent, ...rest])
  } as typeof query
  try {
    await call()
  } finally {
    prototype.query = query
  }
  if (last === undefined) throw new Error('The call sent no statement')
  return last
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  const text = Array.isArray(value) ? `{${value.join(',')}}` : String(value)
  return `'${text.replaceAll("'", "''")}'`
}

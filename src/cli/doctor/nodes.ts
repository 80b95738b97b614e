import { type Database, sql } from '../../db/db.ts'
import { connectionLimits } from '../../db/servers/suitable.ts'
import { type NodeView, readNodes } from '../../nodes/nodes.ts'
import { skewMaxMs } from '../../nodes/presence.ts'
import type { Finding } from './files.ts'

/** Connections that must be left for commands and for people. */
const spare = 5
/** Connections of each node besides its pool: two for short reads, one for signals, one for periodic work. */
const perNode = 4

/** Findings about the nodes that serve now: what they must have in common, and room for all of them. */
export async function nodeFindings(db: Database): Promise<Finding[]> {
  const alive = (await readNodes(db.readOnly)).filter((one) => one.alive)
  const findings: Finding[] = []
  const add = (which: readonly NodeView[], finding: string, what: string, remedy: string): void => {
    if (which.length > 0) findings.push({ finding, what: `${which.map(nameOf).join(', ')}: ${what}`, remedy })
  }
  for (const one of alive)
    for (const mark of one.marks.filter((text) => text.startsWith('settings differ')))
      add(
        [one],
        'settings_differ',
        `${mark}.`,
        'Give all nodes the same values, and restart those that have others.',
      )
  add(
    alive.filter(({ marks }) => marks.includes('behind')),
    'versions_differ',
    `an older version than ${alive.find(({ marks }) => !marks.includes('behind'))?.version}.`,
    'This is right while a new version is rolled out. Finish it, or go back.',
  )
  add(
    alive.filter(({ info }) => Math.abs(info.skew_ms) > skewMaxMs),
    'clock_skew',
    'the clock differs from that of the database by more than 5 s.',
    'Synchronise the clocks of all machines, by NTP. Nothing is judged by them, but logs are hard to read.',
  )
  if (alive.length > 1)
    add(
      alive.filter(({ info }) => info.limit_store === 'memory'),
      'limiter_store_memory',
      'limits are counted by each node for itself, so several nodes allow several times as much.',
      'Set CELLKEEP_LIMIT_STORE=postgres on every node.',
    )
  add(
    alive.filter(({ info }) => info.warnings.includes('bus_deaf')),
    'bus_deaf',
    'no signals of other nodes arrive; what they end is noticed within 30 s.',
    'Look for a pooler between the node and the database: CELLKEEP_DATABASE_DIRECT_URL must lead past it.',
  )
  return [...findings, ...(await connectionFindings(db, alive))]
}

const nameOf = ({ name, id }: NodeView): string => `${name} (${id})`

async function connectionFindings(db: Database, alive: readonly NodeView[]): Promise<Finding[]> {
  const { max, used } = await db.one<{ max: number; used: number }>(sql`
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as max,
      (select count(*) from pg_stat_activity where backend_type = 'client backend') as used`)
  const limits = await db.rows<{ whose: string; allowed: number }>(
    sql`${sql.raw(connectionLimits)} order by allowed`,
  )
  const wanted = alive.reduce((all, { info }) => all + info.pool.max + perNode, 0)
  const held = limits.find(({ allowed }) => wanted > allowed)
  if (held)
    return [
      {
        finding: 'connections_short',
        what: `The ${held.whose} allows ${held.allowed} connections, and the nodes may open ${wanted}.`,
        remedy: `Run \`alter ${held.whose} connection limit ${wanted + spare}\` as an administrator, or lower CELLKEEP_DATABASE_POOL_MAX.`,
      },
    ]
  if (wanted + spare <= max && used + spare <= max) return []
  return [
    {
      finding: 'connections_short',
      what: `The server allows ${max} connections; ${used} are open, and the nodes may open ${wanted}.`,
      remedy:
        'Raise max_connections, or lower CELLKEEP_DATABASE_POOL_MAX; keep 5 free for commands and people.',
    },
  ]
}

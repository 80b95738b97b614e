import { type Database, sql } from '../../db/db.ts'
import { connectionLimits } from '../../db/servers/suitable.ts'
import { skewMaxMs } from '../../nodes/node-row.ts'
import { type NodeView, readNodes } from '../../nodes/nodes.ts'
import type { Finding } from './finding.ts'

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
        'Give all nodes the same values, and restart those that had others.',
      )
  add(
    alive.filter(({ marks }) => marks.includes('behind')),
    'versions_differ',
    `an older version than ${alive.find(({ marks }) => !marks.includes('behind'))?.version}.`,
    'This is normal during a roll-out. Finish it, or go back to the older version.',
  )
  add(
    alive.filter(({ info }) => Math.abs(info.skew_ms) > skewMaxMs),
    'clock_skew',
    'the clock differs from that of the database by more than 5 s.',
    'Synchronise the clocks of all machines with NTP. No decision depends on them, but logs are hard to compare.',
  )
  if (alive.length > 1)
    add(
      alive.filter(({ info }) => info.limit_store === 'memory'),
      'limiter_store_memory',
      'each node counts limits on its own, so several nodes together allow several times as much.',
      'Set CELLKEEP_LIMIT_STORE=postgres on every node.',
    )
  add(
    alive.filter(({ info }) => info.warnings.includes('bus_deaf')),
    'bus_deaf',
    'signals from other nodes do not arrive, so connections that those nodes end stay open for up to 30 s.',
    'If there is a pooler between the node and the database, set CELLKEEP_DATABASE_DIRECT_URL to a URL past it.',
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
      what: `The database server allows ${max} connections; ${used} are open, and the nodes may open ${wanted}.`,
      remedy:
        'Raise max_connections or lower CELLKEEP_DATABASE_POOL_MAX, and leave 5 connections free for commands and people.',
    },
  ]
}

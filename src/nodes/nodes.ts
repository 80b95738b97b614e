import { type Queryable, sql } from '../db/db.ts'
import { isAlive as aliveText } from '../db/migration/alive-nodes.ts'

/** Counts and states of a node; never a name, an id or the value of a setting. */
export type NodeInfo = {
  memory_mb: number
  pool: { open: number; idle: number; waiting: number; max: number }
  sockets: number
  streams: number
  /** Requests that are being answered. */
  running: number
  /** Answers per second since the previous heartbeat. */
  rate: number
  p99_ms: number | null
  /** The 99th percentile of the event loop delay. */
  loop_ms: number
  /** How far the node's clock is ahead of the database's. */
  skew_ms: number
  /** The timeline of the database server, as the node's connections saw it; null if it cannot be read. */
  timeline: number | null
  /** True: the node finds no primary and refuses calls at once. */
  breaker_open: boolean
  /** Why it is not ready. */
  reason: string | null
  warnings: string[]
  limit_store: string
}

export type NodeState = 'ready' | 'not_ready' | 'drained' | 'leaving' | 'draining'

export type NodeView = {
  id: string
  name: string
  version: string
  /** The newest migration that it knows. */
  known_step: string
  pid: number
  started_at: string
  seen_at: string
  /** Seen within 15 s. */
  alive: boolean
  state: NodeState
  /** What an operator wants it to do: `run` or `drain`. */
  wanted: string
  /** What an operator should look at: `settings differ: …`, `same name`, `behind`, `silent`. */
  marks: string[]
  info: NodeInfo
}

/** A digest of each setting on which all nodes should agree. */
export type Digests = Readonly<Record<string, string>>

export const isAlive = sql.raw(aliveText)

/** Every node that has not ended, by name. */
export async function readNodes(db: Pick<Queryable, 'rows'>): Promise<NodeView[]> {
  type Row = Omit<NodeView, 'marks' | 'info'> & { info: NodeInfo & { settings?: Digests } }
  const rows = await db.rows<Row>(sql`
    select id, name, version, known_step, pid, started_at, seen_at, ${isAlive} as alive, state, wanted, info
    from node order by name, started_at, id`)
  const alive = rows.filter((row) => row.alive)
  return rows.map(({ info: { settings = {}, ...info }, ...row }) => {
    const others = alive.filter(({ id }) => id !== row.id)
    const marks = row.alive
      ? [
          differing(
            settings,
            alive.map((one) => one.info.settings ?? {}),
          ),
          others.some(({ name }) => name === row.name) && 'same name',
          others.some(({ version }) => isOlder(row.version, version)) && 'behind',
        ]
      : ['silent']
    return { ...row, marks: marks.filter((mark) => typeof mark === 'string'), info: { ...noInfo, ...info } }
  })
}

/** Removes the rows of processes that ended without removing their row and were last seen a day ago. */
export const removeNodes = (db: Pick<Queryable, 'run'>): Promise<number> =>
  db.run(sql`delete from node where seen_at <= now() - interval '24 hours'`)

/** For values that a node of another version does not report. */
const noInfo: NodeInfo = {
  memory_mb: 0,
  pool: { open: 0, idle: 0, waiting: 0, max: 0 },
  sockets: 0,
  streams: 0,
  running: 0,
  rate: 0,
  p99_ms: null,
  loop_ms: 0,
  skew_ms: 0,
  timeline: null,
  breaker_open: false,
  reason: null,
  warnings: [],
  limit_store: '',
}

/** The settings in which a node differs from the majority; without a majority, those in which nodes differ. */
function differing(own: Digests, all: readonly Digests[]): string | undefined {
  const names = Object.entries(own)
    .filter(([name, digest]) => {
      const known = all.filter((one) => name in one)
      return 2 * known.filter((one) => one[name] === digest).length <= known.length
    })
    .map(([name]) => name)
    .sort()
  return names.length > 0 ? `settings differ: ${names.join(', ')}` : undefined
}

/** Compares the numbers of two versions; what follows a hyphen is ignored. */
export function isOlder(version: string, than: string): boolean {
  const [a = [], b = []] = [version, than].map((one) => (one.split('-')[0] ?? '').split('.').map(Number))
  const at = a.findIndex((number, index) => number !== b[index])
  return at >= 0 && (a[at] as number) < (b[at] ?? 0)
}

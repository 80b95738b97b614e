import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { App } from './core/app.ts'
import { sql } from './db/db.ts'
import { readSteps, type Step } from './db/migration/steps.ts'
import type { ReadyState } from './db/servers/ready.ts'
import { StartError } from './errors.ts'
import type { Sample } from './observe/family.ts'
import type { Meter, MetricRegistry, Sources } from './observe/meter.ts'
import { version } from './wire/version.ts'

const delayWindowMs = 10_000
const resolutionMs = 10
/** What only the database knows is read in the background, at most this often; a scrape never waits for it. */
const lookMs = 5_000
const backlogMax = 10_000

/** Adds the metrics of a service to a registry; call the returned function to take them out. */
export function exportMetrics(
  app: App,
  { meter, registry }: { meter: Meter; registry: MetricRegistry },
): () => void {
  const delay = watchDelay()
  const steps = readSteps()
  const latest = watchDatabase(app)
  const known = (read: (one: Known) => Sample[]): Sample[] => {
    const found = latest().known
    return found ? read(found) : []
  }
  const { db, hub, passwords, config, audit, node } = app
  const sources: Sources = {
    build_info: () => [[1, version, process.version, steps.at(-1)?.name ?? '']],
    readiness: () => [[1, unready(node) ?? db.primary.trouble ?? reasonOf(latest().state)]],
    event_loop_delay_seconds: delay.samples,
    hash_queue_depth: () => [[passwords.depth]],
    hash_queue_max: () => [[config.hash_queue_max]],
    db_skew_seconds: () => [[db.clock.skewMs / 1000]],
    db_pool: () => {
      const replicas = db.replicas?.all.map(({ load }) => load())
      return [...poolOf('primary', [db.load()]), ...(replicas ? poolOf('replica', replicas) : [])]
    },
    replica_lag_seconds: () =>
      db.replicas?.all.map(({ lagMs }, index): Sample => [lagMs / 1000, String(index + 1)]) ?? [],
    bus_up: () => [[Number(app.bus.isUp)]],
    live_connections: () => {
      const { sockets, streams } = hub.count()
      return [
        [sockets, 'socket'],
        [streams, 'stream'],
      ]
    },
    audit_insert_failures_total: () => [[audit.failures]],
    audit_backlog_rows: () => known(({ rows }) => [[rows]]),
    audit_backlog_seconds: () => known(({ age }) => [[age]]),
    audit_partitions_ahead: () => known(({ ahead }) => (ahead === null ? [] : [[ahead]])),
    db_breaker_open: () => [[db.primary.isOpen ? 1 : 0]],
    db_waiting: () => [[db.primary.isAway ? db.primary.inside : db.load().waiting]],
    db_timeline: () => {
      const { timeline } = db.primary.admission
      return timeline === null ? [] : [[timeline]]
    },
    db_sync_standbys: () => known(({ standbys }) => (standbys === null ? [] : [[standbys]])),
    migration_pending: () => known(({ done }) => pendingOf(steps, done)),
  }
  let remove: () => void
  try {
    remove = meter.register(registry, sources)
  } catch (error) {
    delay.end()
    throw new StartError(
      'configuration',
      `The option metrics is not a registry that accepts the metrics of this service: ${(error as Error).message}. A registry of prom-client serves one service; create another with \`new Registry()\`.`,
      78,
      { cause: error },
    )
  }
  return () => {
    remove()
    delay.end()
  }
}

function poolOf(target: 'primary' | 'replica', loads: ReturnType<App['db']['load']>[]): Sample[] {
  const sum = (of: (load: (typeof loads)[number]) => number): number =>
    loads.reduce((all, load) => all + of(load), 0)
  return [
    [sum(({ open, idle }) => open - idle), 'used', target],
    [sum(({ idle }) => idle), 'idle', target],
    [sum(({ waiting }) => waiting), 'waiting', target],
  ]
}

function watchDelay(): { samples(): Sample[]; end(): void } {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  // The histogram measures from one of its timers to the next, so the timer's interval is subtracted.
  const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - resolutionMs / 1000)
  const read = (): Sample[] => [
    ...[0.5, 0.9, 0.99].map((part): Sample => [seconds(histogram.percentile(part * 100)), String(part)]),
    [seconds(histogram.max), '1'],
  ]
  let samples = read()
  histogram.enable()
  const timer = setInterval(() => {
    samples = read()
    histogram.reset()
  }, delayWindowMs).unref()
  return {
    samples: () => samples,
    end: () => {
      clearInterval(timer)
      histogram.disable()
    },
  }
}

const unready = ({ phase, isDrained }: App['node']): string | undefined =>
  phase !== 'serving' ? 'shutting_down' : isDrained ? 'draining' : undefined

const reasonOf = (state: ReadyState | undefined): string =>
  state === undefined ? 'starting' : state.ready ? 'ok' : state.reason

const kinds = ['expand', 'index', 'backfill', 'contract'] as const

function pendingOf(steps: readonly Step[], done: readonly string[]): Sample[] {
  const pending = steps.filter(({ name }) => !done.includes(name))
  return kinds.map((kind) => [pending.filter((step) => step.kind === kind).length, kind])
}

/** Returns the newest answers, and asks the database again for the next scrape. */
function watchDatabase({ db, readiness }: App) {
  let known: Known | undefined
  let isLooking = false
  let next = 0
  const look = async (): Promise<void> => {
    isLooking = true
    await readiness.check()
    known = await db.readOnly.one<Known>(asked).catch(() => undefined)
    next = performance.now() + lookMs
    isLooking = false
  }
  const latest = (): Latest => {
    if (!isLooking && performance.now() >= next) void look()
    return { state: readiness.latest, known }
  }
  // So that the first scrape finds an answer.
  latest()
  return latest
}

type Latest = { state: ReadyState | undefined; known: Known | undefined }

type Known = { rows: number; age: number; standbys: number | null; ahead: number | null; done: string[] }

/**
 * Names of partitions hold their first numbers, which are faster to read than their bounds. The log may still be one
 * table.
 */
const asked = sql`
  select backlog.*, standby.*, part.*, array(select name from schema_migration where state = 'done') as done
  from (
      select count(*)::int as rows, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as age
      from (select created_at from audit_inbox order by written limit ${sql.raw(backlogMax)}) waiting
    ) backlog,
    (
      select case when current_setting('synchronous_standby_names') <> '' and pg_has_role('pg_monitor', 'member')
        then count(*) filter (where sync_state in ('sync', 'quorum'))::int end as standbys
      from pg_stat_replication
    ) standby,
    (
      select case when count(*) > 0
        then count(*) filter (where substring(relname from '[0-9]+$')::bigint > seq + 1)::int end as ahead
      from pg_inherits join pg_class on pg_class.oid = inhrelid, audit_position where inhparent = 'audit_log'::regclass
    ) part`

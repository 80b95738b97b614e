import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { App } from '../core/app.ts'
import { withinMs } from '../core/tally.ts'
import { type Sql, sql } from '../db/db.ts'
import { migrationNames } from '../db/migration/steps.ts'
import type { ReadyState } from '../db/servers/ready.ts'
import { version } from '../wire/version.ts'
import { type Digests, isAlive, type NodeInfo, type NodeState } from './nodes.ts'

/** A larger difference from the clock of the database is worth a warning. */
export const skewMaxMs = 5_000

/** The statements of the row; `write` resolves to what an operator wants of this node. */
export type Row = { write(ready: ReadyState, isGone: boolean): Promise<string>; remove(): Promise<void> }

export function createRow(app: App, settings: Digests): Row {
  const { db, node, log, tally } = app
  const known_step = migrationNames().at(-1) as string
  const loop = monitorEventLoopDelay({ resolution: 20 })
  loop.enable()
  let last = { at: performance.now(), requests: tally.requests }

  return {
    write: async (ready, isGone) => {
      const at = performance.now()
      const rate = ((tally.requests - last.requests) * 1000) / Math.max(1, at - last.at)
      last = { at, requests: tally.requests }
      const info = { ...measured(app, rate, loop), reason: ready.ready ? null : ready.reason, settings }
      const sentAt = performance.now()
      const told = await db.promptly.one<{ wanted: string; clock_ms: number; behind: boolean }>(sql`
        insert into node (id, name, version, known_step, pid, started_at, seen_at, state, info)
        values (${node.id}, ${node.name}, ${version}, ${known_step}, ${process.pid}, now(), now(),
          ${stateOf(app, ready.ready, isGone)}, ${JSON.stringify(info)}::jsonb)
        on conflict (id) do update
          set seen_at = excluded.seen_at, state = excluded.state, info = excluded.info
        returning wanted, ${clockMs} as clock_ms,
          exists (
            select from node other
            where other.id <> node.id and other.${isAlive} and ${numbers(sql`other.version`)} > ${numbers(sql`node.version`)}
          ) as behind, set_config('synchronous_commit', 'off', true)`)
      db.clock.measured(told.clock_ms, sentAt)
      warnOfSkew(app)
      if (told.behind !== node.isBehind)
        log.info(
          told.behind
            ? 'a node of a newer version is serving and does the periodic work'
            : 'no node of a newer version is serving',
        )
      node.isBehind = told.behind
      return told.wanted
    },
    remove: async () => {
      loop.disable()
      await db.run(sql`delete from node where id = ${node.id}`)
    },
  }
}

export const clockMs = sql`extract(epoch from clock_timestamp())::float8 * 1000`

/** `1.10.0` as an array of numbers; null for a text that has no such version, which makes any comparison null. */
const numbers = (version: Sql): Sql =>
  sql`string_to_array(substring(${version} from '^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}'), '.')::int[]`

function stateOf({ node }: App, isReady: boolean, isGone: boolean): NodeState {
  if (node.phase !== 'serving') return node.phase
  if (node.isDrained) return isGone ? 'drained' : 'leaving'
  return isReady ? 'ready' : 'not_ready'
}

function measured(
  app: App,
  rate: number,
  loop: ReturnType<typeof monitorEventLoopDelay>,
): Omit<NodeInfo, 'reason'> {
  const { db, hub, tally, config, warnings } = app
  const p99_ms = withinMs(tally, 0.99)
  tally.durations.fill(0)
  const loop_ms = Math.round(loop.percentile(99) / 1e5) / 10
  loop.reset()
  return {
    memory_mb: Math.round(process.memoryUsage.rss() / 1_048_576),
    pool: { ...db.load(), max: config.database_pool_max },
    ...hub.count(),
    running: tally.running,
    rate: Math.round(rate * 10) / 10,
    p99_ms,
    loop_ms,
    skew_ms: db.clock.skewMs,
    timeline: db.primary.admission.timeline,
    breaker_open: db.primary.isOpen,
    warnings: [...warnings],
    limit_store: config.limit_store,
  }
}

function warnOfSkew({ db, log, warnings }: App): void {
  const { skewMs: skew_ms } = db.clock
  const isFar = Math.abs(skew_ms) > skewMaxMs
  if (isFar && !warnings.has('clock_skew'))
    log.warn(
      { event: 'clock_skew', skew_ms },
      'the clock of this machine differs from that of the database; synchronise both',
    )
  if (isFar) warnings.add('clock_skew')
  else warnings.delete('clock_skew')
}

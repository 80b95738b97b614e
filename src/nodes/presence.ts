import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { App } from '../core/app.ts'
import { withinMs } from '../core/tally.ts'
import { sql } from '../db/db.ts'
import { migrationNames } from '../db/migration/migrate.ts'
import type { Readiness, ReadyState } from '../db/servers/ready.ts'
import { version } from '../wire/version.ts'
import { type Digests, isAlive, type NodeInfo, type NodeState, readNodes, removeNodes } from './nodes.ts'

/** The row of this process in the table of nodes, which only informs operators. */
export type Presence = {
  /** Writes the row now, and every few seconds from then on. */
  join(): Promise<void>
  /** The state may have changed: writes the row soon. */
  beat(): void
  /** Removes the row. */
  end(): Promise<void>
}

const everyMs = 5_000
/** A process that ends sooner never appears as a node. */
const joinMs = 5_000
/** A larger difference from the clock of the database is worth a warning. */
export const skewMaxMs = 5_000
const settleMs = 250
/** How long a shutdown waits for an unreachable database. */
const farewellMs = 2_000

type PresenceDeps = {
  readiness: Readiness
  /** The digests of the settings on which nodes agree, with the salt of this database. */
  digests(salt: string): Digests
  /** False: the process joins only when `join` is called. */
  joins: boolean
}

export function createPresence(app: App, deps: PresenceDeps): Presence {
  const { node, log } = app
  let timer: NodeJS.Timeout | undefined
  let joining: Promise<void> | undefined
  let running: Promise<void> | undefined
  let isAsked = false
  let row: Row | undefined
  let isFailing = false
  let isOver = false
  const unlisten = app.hub.listen(({ closings }) => {
    if (closings.some((one) => one.kind === 'node' && one.node_id === node.id)) beat()
  })
  const drain = createDrain(app, beat)

  /** Writes one row at a time; the next write covers what changes meanwhile. */
  function beat(): void {
    if (!row || isOver) return
    isAsked = true
    running ??= write(row).finally(() => {
      running = undefined
      if (isAsked) beat()
      else again()
    })
  }
  function again(): void {
    clearTimeout(timer)
    if (!isOver) timer = setTimeout(row ? beat : join, everyMs * (0.9 + Math.random() * 0.2)).unref()
  }
  async function write(row: Row): Promise<void> {
    isAsked = false
    try {
      drain.heed(await row.write(await deps.readiness.check(), drain.isGone()))
      isFailing = false
    } catch (error) {
      // A stop aborts the running statement, and `end` logs what becomes of the row.
      if (!isFailing && !isOver)
        log.warn(
          { event: 'node_heartbeat', err: error },
          'the heartbeat of this node cannot be written; the node goes on serving',
        )
      isFailing = true
    }
  }
  function join(): Promise<void> {
    joining ??= enter().finally(() => {
      joining = undefined
    })
    return joining
  }
  async function enter(): Promise<void> {
    if (row || isOver) return
    clearTimeout(timer)
    try {
      const sentAt = performance.now()
      const { salt, clock_ms } = await app.db.readOnly.one<{ salt: string; clock_ms: number }>(sql`
        select salt, ${clockMs} as clock_ms from cluster`)
      app.db.clock.measured(clock_ms, sentAt)
      if (isOver) return
      // Also here, because the cleanup may be off: processes that are killed again and again would leave ever more
      // rows.
      await removeNodes(app.db)
      if (isOver) return
      row = createRow(app, deps.digests(salt))
      beat()
      await running
      if (!isOver) await warnOfDifferences(app)
    } catch (error) {
      if (isOver) return
      log.warn(
        { event: 'node_heartbeat', err: error },
        'this node cannot join the others yet; it serves and will try again',
      )
      again()
    }
  }

  if (deps.joins) timer = setTimeout(join, joinMs).unref()
  return {
    join,
    beat,
    end: async () => {
      isOver = true
      clearTimeout(timer)
      unlisten()
      drain.end()
      let isLate = false
      const stays = (why: { err?: unknown }): void =>
        log.warn(
          { event: 'node_heartbeat', ...why },
          'the row of this node stays until the cleanup removes it',
        )
      const gone = (async () => {
        await joining
        await running
        if (row && !isLate) await row.remove()
        return true
      })().catch((err) => {
        // Too late: the stop has gone on and closed the pool.
        if (!isLate) stays({ err })
        return true
      })
      isLate = !(await Promise.race([gone, delay(farewellMs, false, { ref: false })]))
      if (isLate && row) stays({})
    },
  }
}

/** The statements of the row; `write` resolves to what an operator wants of this node. */
type Row = { write(ready: ReadyState, isGone: boolean): Promise<string>; remove(): Promise<void> }

function createRow(app: App, settings: Digests): Row {
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
      const told = await db.one<{ wanted: string; clock_ms: number; behind: boolean }>(sql`
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

const clockMs = sql`extract(epoch from clock_timestamp())::float8 * 1000`

/** `1.10.0` as an array of numbers; null for a text that has no such version, which makes any comparison null. */
const numbers = (version: typeof isAlive) =>
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

async function warnOfDifferences({ db, node, log }: App): Promise<void> {
  const own = (await readNodes(db.readOnly)).find(({ id }) => id === node.id)
  for (const mark of own?.marks ?? [])
    log.warn(
      { event: 'node_differs', mark },
      'settings of this node differ from those of others; see `cellkeep nodes`',
    )
}

/**
 * Carries out what operators want of this node: a drained node leaves load balancers, and its connections move to other
 * nodes.
 */
function createDrain({ node, hub, config, log }: App, changed: () => void) {
  let leaving: NodeJS.Timeout | undefined
  let isGone = false
  const leave = (): void => {
    hub.leave()
    isGone = true
    // Most connections have closed by then. Written at once, so that `cellkeep nodes drain` need not wait for a
    // heartbeat.
    leaving = setTimeout(changed, settleMs).unref()
  }
  return {
    /** The live connections have been told to go. */
    isGone: () => isGone,
    heed: (wanted: string): void => {
      if ((wanted === 'drain') === node.isDrained || node.phase !== 'serving') return
      node.isDrained = !node.isDrained
      clearTimeout(leaving)
      isGone = false
      if (node.isDrained) leaving = setTimeout(leave, config.shutdown_delay_ms).unref()
      else hub.stay()
      log.info(node.isDrained ? 'an operator is draining this node' : 'an operator resumed this node')
      changed()
    },
    end: () => clearTimeout(leaving),
  }
}

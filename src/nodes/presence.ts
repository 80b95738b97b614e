import { setTimeout as delay } from 'node:timers/promises'
import type { App } from '../core/app.ts'
import { sql } from '../db/db.ts'
import type { Log } from '../log/log.ts'
import { createComparison } from './comparison.ts'
import { createDrain } from './drain.ts'
import { clockMs, createRow, type Row } from './node-row.ts'
import { type Digests, removeNodes } from './nodes.ts'

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
/** How long a shutdown waits for an unreachable database. */
const farewellMs = 2_000

type PresenceDeps = {
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
  const comparison = createComparison(app)

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
      drain.heed(await row.write(await app.readiness.check(), drain.isGone()))
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
      const salt = await readSalt(app)
      if (isOver) return
      // Also here, because the cleanup may be off: processes that are killed again and again would leave ever more
      // rows.
      await removeNodes(app.db)
      if (isOver) return
      row = createRow(app, deps.digests(salt))
      beat()
      await running
      if (!isOver) await comparison.begin()
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
      comparison.end()
      unlisten()
      drain.end()
      const idle = async (): Promise<void> => {
        await joining
        await running
      }
      await leave(log, idle, () => row)
    },
  }
}

/** The salt of this database. Measures its clock on the way. */
async function readSalt({ db }: App): Promise<string> {
  const sentAt = performance.now()
  const { salt, clock_ms } = await db.readOnly.one<{ salt: string; clock_ms: number }>(sql`
    select salt, ${clockMs} as clock_ms from cluster`)
  db.clock.measured(clock_ms, sentAt)
  return salt
}

/** Removes the row once nothing writes it, but does not wait long for a database that cannot be reached. */
async function leave(log: Log, idle: () => Promise<void>, row: () => Row | undefined): Promise<void> {
  let isLate = false
  const stays = (why: { err?: unknown }): void =>
    log.warn({ event: 'node_heartbeat', ...why }, 'the row of this node stays until the cleanup removes it')
  const removed = async (): Promise<boolean> => {
    try {
      await idle()
      if (!isLate) await row()?.remove()
    } catch (err) {
      // Too late: the stop has gone on and closed the pool.
      if (!isLate) stays({ err })
    }
    return true
  }
  isLate = !(await Promise.race([removed(), delay(farewellMs, false, { ref: false })]))
  if (isLate && row()) stays({})
}

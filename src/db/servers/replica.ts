import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { beginStatement } from '../../observe/statement.ts'
import { type Answered, answered } from '../answered.ts'
import type { Clock } from '../clock.ts'
import type { DatabaseOptions, Pool } from '../pool.ts'
import { openSlots, type Slot } from '../slots.ts'
import { compile, nameless, type Sql, sql } from '../sql.ts'
import { isWornOut, noteOpened } from '../statement-names.ts'
import type { Connection } from './connection.ts'
import { cut, dial } from './dial.ts'
import { repeatCause } from './failure.ts'
import type { Fence } from './fence.ts'
import { judgeReplica } from './replica-admission.ts'
import { configOf, limitsOf } from './session-settings.ts'
import { Unfit } from './unfit.ts'

export class Behind extends Error {}

/** One standby. */
export type Replica = {
  /** Reads may be sent to it. */
  readonly isFit: boolean
  /** Why not. */
  readonly why: unknown
  /** Reads that wait for its answer. */
  readonly running: number
  /** How long the last fence took to be replayed; grows while one is not replayed yet, or while the server is away. */
  readonly lagMs: number
  /** Resolves once it is known whether it is fit. */
  readonly judged: Promise<void>
  readonly load: Pool['load']
  /** Undefined if it has not replayed everything below the fence. An error may concern only this server. */
  read(query: Sql, fence: number, shared?: string): Promise<Answered | undefined>
  close(): Promise<void>
}

type ReplicaContext = DatabaseOptions & {
  pool: Pool
  fence: Fence
  clock: Clock
  lagMaxMs: number
  /** `why` is undefined once it is fit. */
  onChange(why: unknown): void
}

/** A server that has not answered for this long is not used. */
const silenceMs = 1_000
const probeMs = 1_000
const failuresMax = 2
const pausesMs = [1, 3, 10, 30, 100]

export function openReplica(connection: Connection, context: ReplicaContext): Replica {
  const { pool, fence, clock, lagMaxMs, onChange } = context
  const { receiving, observer, noteLostName } = pool
  const { admission } = pool.primary
  const limits = limitsOf(context)
  const isPooled = context.connection.direct !== undefined
  /** Open connections, with the timeline that the primary had when they were admitted. */
  const live = new Map<pg.Client, number | null>()
  let watcher: pg.Client | undefined
  let isFit: boolean | undefined
  let why: unknown
  let running = 0
  let failures = 0
  let lagMs = 0
  let thereAt = performance.now()
  const { promise: judged, resolve: nowJudged } = Promise.withResolvers<void>()
  const closing = new AbortController()

  const dialled = async (): Promise<pg.Client> => {
    const { timeline } = admission
    const client = await dial({
      connection,
      config: (one) => configOf(one, context, '-c default_transaction_read_only=on'),
      judge: async (client) => void (await judgeReplica(client, limits, admission, clock)),
      withinMs: silenceMs,
      isPooled,
    })
    live.set(client, timeline)
    client.once('end', () => live.delete(client))
    return client
  }
  const change = (toFit: boolean, error?: unknown): void => {
    why = error
    if (isFit === toFit) return
    isFit = toFit
    failures = 0
    nowJudged()
    // Cuts its connections, so that waiting reads go to the primary at once.
    if (!toFit) for (const client of live.keys()) if (client !== watcher) cut(client)
    if (!closing.signal.aborted) onChange(why)
  }
  /** Keeps the first reason: connections cut because the server is unfit fail too, and explain less. */
  const failed = (error: unknown): void => {
    if (isFit) change(false, error)
  }
  const readOn = fencedReader(context, isPooled)
  const slots = openSlots(
    {
      connect: () =>
        dialled().catch((error) => {
          failed(error)
          throw error
        }),
      isCertain: (client) => isFit === true && live.get(client) === admission.timeline,
      isStillFit: async (client) => {
        cut(client)
        return false
      },
      alive: () => {},
      enter: () => {},
      leave: () => {},
      isAway: false,
      get isOpen() {
        return !isFit
      },
    },
    {
      max: context.poolMax,
      waitMs: 0,
      onOpen: (slot) => {
        noteOpened(slot)
        receiving.watch(slot)
      },
      onError: () => {},
    },
  )
  const ask = async (client: pg.Client): Promise<number> => {
    const timer = setTimeout(() => cut(client), silenceMs)
    try {
      return await judgeReplica(client, limits, admission, clock)
    } finally {
      clearTimeout(timer)
    }
  }
  /** Finds out whether it is fit, and how far behind. */
  const probe = async (): Promise<void> => {
    await fence.take().catch(() => {})
    const { newest } = fence
    if (newest === null) return
    try {
      watcher ??= await dialled()
      const began = performance.now()
      for (let tries = 0; ; tries += 1) {
        const isThere = (await ask(watcher)) >= newest
        lagMs = performance.now() - began
        if (lagMs > lagMaxMs) change(false, new Behind(`it is ${Math.round(lagMs)} ms behind`))
        else if (isThere) change(true)
        if (isThere) thereAt = performance.now()
        if (isThere || closing.signal.aborted) return
        await delay(pausesMs[Math.min(tries, pausesMs.length - 1)])
      }
    } catch (error) {
      if (watcher) cut(watcher)
      watcher = undefined
      lagMs = performance.now() - thereAt
      change(false, error)
    }
  }
  const watch = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await probe()
      await delay(probeMs, undefined, { signal: closing.signal, ref: false }).catch(() => {})
    }
  }
  const watching = watch()
  return {
    get isFit() {
      return isFit === true
    },
    get why() {
      return why
    },
    get running() {
      return running
    },
    get lagMs() {
      return lagMs
    },
    judged,
    load: slots.load,
    read: async (query, fence, shared) => {
      running += 1
      try {
        if (!isFit) throw new Error('the replica is not used')
        const slot = await slots.take()
        const end = beginStatement(observer, shared, 'replica')
        try {
          const answer = await readOn(slot, query, fence)
          slot.release(isWornOut(slot))
          failures = 0
          return answer
        } catch (error) {
          noteLostName(error)
          slot.release(repeatCause(error) !== undefined)
          throw error
        } finally {
          end()
          receiving.done(slot)
        }
      } catch (error) {
        failures += 1
        if (failures >= failuresMax) failed(error)
        throw error
      } finally {
        running -= 1
      }
    },
    close: async () => {
      closing.abort()
      await Promise.all([slots.close(), watching])
      await watcher?.end().catch(() => {})
    },
  }
}

/** Reads on a connection to a standby; resolves to undefined if it has not replayed everything below the fence. */
function fencedReader(
  { hasNames = true, onStatement }: Pick<DatabaseOptions, 'hasNames' | 'onStatement'>,
  isPooled: boolean,
) {
  const send = (slot: Slot, query: Sql): Promise<Answered> => {
    const statement = hasNames ? compile(query) : nameless(query)
    onStatement?.(statement.text)
    return answered(slot, statement)
  }
  return async (slot: Slot, query: Sql, fence: number): Promise<Answered | undefined> => {
    const begun = isPooled && slot.query('begin read only')
    const check = send(slot, replayed(fence))
    const answer = send(slot, query)
    // Asked after the read: a standby promoted meanwhile may have shown data that the primary never had.
    const remains = send(slot, inRecovery)
    const ended = isPooled && slot.query('commit')
    const [settled, ...others] = await Promise.allSettled([check, answer, remains, begun, ended])
    if (settled.status === 'rejected') throw settled.reason
    // Checked before errors: the read may have failed because something is not replayed yet.
    if (settled.value.rows.length === 0) return undefined
    for (const one of others) if (one.status === 'rejected') throw one.reason
    if ((await remains).rows.length === 0) throw new Unfit('read_only', 'the server was promoted')
    return await answer
  }
}

const replayed = (fence: number): Sql =>
  sql`select where pg_last_wal_replay_lsn() - '0/0' >= ${fence}::bigint`

const inRecovery = sql`select where pg_is_in_recovery()`

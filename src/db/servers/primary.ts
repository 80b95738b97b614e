import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { LogEvent } from '../../log/events.ts'
import type { Observer } from '../../observe/observer.ts'
import type { Clock } from '../clock.ts'
import { type Admission, createAdmission, type Limits } from './admission.ts'
import { createBreaker, type Trouble } from './breaker.ts'
import { clientConfig, directOf } from './connection.ts'
import { cut, type Dial, dial } from './dial.ts'
import { type RepeatCause, refusesLogin, unavailable } from './failure.ts'
import { Unfit } from './unfit.ts'

/** Access to the one server that takes writes: gives only admitted connections, and tracks which may still be used. */
export type Primary = {
  /** An admitted connection; waits for a primary if there is none. Rejects with what the last attempt failed with. */
  connect(): Promise<pg.Client>
  /** A connection of its own past any pooler, for session locks and LISTEN; without time limits. Does not wait. */
  session(settings: Session): Promise<pg.Client>
  /** True if nothing since this connection was admitted casts doubt on its server. */
  isCertain(client: pg.Client): boolean
  /**
   * Admits a connection anew, or cuts it and resolves to false. A reader that is still fit does not show that
   * connections for writes can be opened.
   */
  isStillFit(client: pg.Client, of?: 'reader'): Promise<boolean>
  /**
   * A connection was lost or a write refused. The same may hold for the others, so each is checked before its next
   * use.
   */
  doubt(): void
  /** Called before something is run again; resolves once that is worth trying. */
  repeats(cause: RepeatCause | 'conflict' | 'replica'): Promise<void>
  /** The database answered, or was asked while no other answer was pending. */
  alive(): void
  /** Nothing was answered lately, and nobody has found out yet whether the server is there. */
  readonly isSilent: boolean
  /** Throws `service_unavailable` if the breaker is open or too many calls wait already. */
  enter(): void
  leave(): void
  /** Calls under way, which wait while there is no primary. */
  readonly inside: number
  readonly isAway: boolean
  readonly isOpen: boolean
  readonly trouble: Trouble | undefined
  readonly admission: Pick<Admission, 'timeline' | 'cluster'>
  close(): void
}

type Session = Pick<pg.ClientConfig, 'application_name' | 'pipeline' | 'query_timeout' | 'options'>

type PrimaryOptions = Pick<Dial, 'connection' | 'config'> & {
  limits: Limits
  clock: Clock
  waitMs: number
  onError(error: unknown, what: string, event?: LogEvent): void
  observer: Observer
  /** Whether some statement waits for its answer. */
  isBusy(): boolean
  /** A connection that nobody uses. */
  idle(): pg.Client | undefined
  /** Whether there are connections that take writes, used or not. */
  hasOpen(): boolean
}

/** The most calls that wait for a primary. */
const waitingMax = 1_000
/** If no running statement is answered for this long, another connection checks whether the primary has changed. */
const silenceMs = 1_000
const askMs = 2_000
/**
 * Mean pauses before something is run again. The other transaction of a conflict has only just been woken: an
 * immediate retry would collide with it again. A server that goes down cuts its connections one by one, and the next
 * one would be lost too.
 */
const pausesMs: Partial<Record<RepeatCause | 'conflict' | 'replica', number>> = { conflict: 10, lost: 100 }

export function openPrimary(options: PrimaryOptions): Primary {
  const { connection, config, limits, clock, waitMs, onError, observer, isBusy, idle, hasOpen } = options
  /** Open connections, with the timeline of their server and the doubts there were when it was admitted. */
  const live = new Map<pg.Client, { timeline: number | null; doubts: number }>()
  let doubts = 0
  let inside = 0
  let aliveAt = 0
  let isLooking = false
  const isSilent = (): boolean => performance.now() - aliveAt >= silenceMs
  /** When calls began to ask for a connection without getting one: a server silent for a moment has not failed yet. */
  let missingSince: number | undefined

  const admission = createAdmission(limits, clock, (later) => {
    for (const [client, { timeline }] of live)
      if (timeline !== null && timeline < later)
        cut(client, new Error('Connection terminated: another server is the primary now'))
  })
  const admit = (client: pg.Client, at: number): void => {
    live.set(client, { timeline: admission.timeline, doubts: at })
    missingSince = undefined
  }
  const tried = (error?: unknown): void => {
    const outcome = error === undefined ? 'ok' : error instanceof Unfit ? error.why : 'failed'
    observer.count('db_connect_total', outcome)
  }
  const open = async (): Promise<pg.Client> => {
    const at = doubts
    if (live.size === 0) missingSince ??= performance.now()
    const client = await dial({ connection, config, judge: admission.judge, tried, withinMs: waitMs })
    admit(client, at)
    breaker.ok()
    client.once('end', () => live.delete(client))
    return client
  }
  const probe = async (): Promise<void> => {
    const client = await open()
    await client.end()
  }
  const isStillFit: Primary['isStillFit'] = async (client, of) => {
    const at = doubts
    const timer = setTimeout(() => cut(client), askMs)
    try {
      await admission.judge(client)
      admit(client, at)
      if (of !== 'reader') breaker.ok()
      return true
    } catch {
      cut(client)
      return false
    } finally {
      clearTimeout(timer)
    }
  }
  /** Opening a connection may fail (name resolution, too many connections) while the open ones still work. */
  const seek = async (): Promise<void> => {
    const spare = idle()
    if (!spare || !(await isStillFit(spare))) await probe()
  }
  const breaker = createBreaker({ waitMs, probe: seek, onAway: () => void doubts++, onError })

  const watch = setInterval(() => {
    if (isLooking || breaker.isAway || !isBusy() || !isSilent()) return
    isLooking = true
    void probe()
      .catch(failed)
      .finally(() => {
        isLooking = false
        aliveAt = performance.now()
      })
  }, silenceMs / 2).unref()

  const failed = (error: unknown): void => {
    if (refusesLogin(error) && hasOpen())
      onError(error, 'the database refuses new connections; the open ones are still used')
    else breaker.failed(error, live.size === 0 ? missingSince : undefined)
  }
  const connect = async (): Promise<pg.Client> => {
    const until = performance.now() + waitMs
    for (;;) {
      await breaker.back(until - performance.now())
      try {
        return await open()
      } catch (error) {
        failed(error)
        if (!breaker.isAway || waitMs === 0) throw error
      }
    }
  }
  const session = async ({ options = '', ...settings }: Session): Promise<pg.Client> => {
    const client = await dial({
      connection: directOf(connection),
      config: (one) => ({
        ...clientConfig(one, `-c statement_timeout=0 ${options}`),
        ...settings,
      }),
      judge: admission.judgeServer,
    })
    live.set(client, { timeline: admission.timeline, doubts })
    client.once('end', () => live.delete(client))
    return client
  }
  return {
    connect,
    session,
    isCertain: (client) => live.get(client)?.doubts === doubts,
    isStillFit,
    doubt: () => {
      doubts += 1
    },
    repeats: async (cause) => {
      if (cause === 'lost') doubts += 1
      observer.count('db_repeats_total', cause)
      const pauseMs = pausesMs[cause]
      if (pauseMs) await delay(pauseMs * (0.5 + Math.random()))
    },
    alive: () => {
      aliveAt = performance.now()
    },
    get isSilent() {
      return isSilent()
    },
    enter: () => {
      if (breaker.isOpen) throw unavailable(new Error('no database server can be used'))
      if (breaker.isAway && inside >= waitingMax)
        throw unavailable(new Error('too many calls wait for the database'))
      inside += 1
    },
    leave: () => {
      inside -= 1
    },
    get inside() {
      return inside
    },
    get isAway() {
      return breaker.isAway
    },
    get isOpen() {
      return breaker.isOpen
    },
    get trouble() {
      return breaker.trouble
    },
    admission,
    close: () => {
      clearInterval(watch)
      breaker.close()
    },
  }
}

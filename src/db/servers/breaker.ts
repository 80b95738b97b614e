import { setTimeout as delay } from 'node:timers/promises'
import type { LogEvent } from '../../log/events.ts'
import { Unfit } from './unfit.ts'

/** Why no database can be used, in the words of readiness. */
export type Trouble = 'db_unreachable' | 'db_read_only' | 'db_other_database' | 'stale_primary'

/** Whether there is a primary. While there is none, one probe at a time looks for it. */
type Breaker = {
  readonly isAway: boolean
  /** The primary has been away for so long that calls are refused at once. */
  readonly isOpen: boolean
  readonly trouble: Trouble | undefined
  /** A search for a primary failed; `since` is when calls began to wait for one. */
  failed(error: unknown, since?: number): void
  /** A server was admitted. */
  ok(): void
  /** Resolves once there is a primary; rejects after `ms` milliseconds, or when the breaker opens. */
  back(ms: number): Promise<void>
  close(): void
}

type BreakerOptions = {
  waitMs: number
  probe(): Promise<void>
  onAway(): void
  onError(error: unknown, what: string, event?: LogEvent): void
}

const shortestMs = 2_000
/** Time to check the connections that are still open. */
const graceMs = 500

export function createBreaker({ waitMs, probe, onAway, onError }: BreakerOptions): Breaker {
  let away: PromiseWithResolvers<void> | undefined
  let isOpen = false
  let last: unknown
  const ended = new AbortController()

  const open = (sought: typeof away): void => {
    if (away !== sought) return
    isOpen = true
    onError(last, 'there is no primary; calls are refused at once until there is one', 'breaker_open')
    away?.reject(last)
  }
  const seek = async (sought: typeof away, since: number): Promise<void> => {
    const restMs = since + Math.max(waitMs, shortestMs) - performance.now()
    const opening = setTimeout(open, Math.max(restMs, graceMs), sought).unref()
    while (away === sought) {
      const pause = isOpen ? 250 + 750 * Math.random() : 50 + 100 * Math.random()
      await delay(pause, undefined, { signal: ended.signal, ref: false }).catch(() => {})
      if (ended.signal.aborted) break
      await probe().catch((error) => {
        last = error
      })
    }
    clearTimeout(opening)
  }
  return {
    get isAway() {
      return away !== undefined
    },
    get isOpen() {
      return isOpen
    },
    get trouble() {
      return away && (last instanceof Unfit ? troubles[last.why] : 'db_unreachable')
    },
    failed: (error, since = performance.now()) => {
      last = error
      if (away || ended.signal.aborted) return
      away = Promise.withResolvers<void>()
      // Without waiters nobody else handles the rejection.
      away.promise.catch(() => {})
      onAway()
      const isStale = error instanceof Unfit && error.why === 'timeline'
      onError(
        error,
        'no database server can be used; calls wait for a primary',
        isStale ? 'stale_primary' : 'db_lost',
      )
      void seek(away, since)
    },
    ok: () => {
      away?.resolve()
      away = undefined
      isOpen = false
    },
    back: async (ms) => {
      if (!away) return
      if (ms <= 0 || isOpen) throw last
      const over = new AbortController()
      const late = delay(ms, undefined, { signal: over.signal }).then(() => {
        throw last
      })
      late.catch(() => {})
      await Promise.race([away.promise, late]).finally(() => over.abort())
    },
    close: () => {
      ended.abort()
      away?.reject(last)
    },
  }
}

const troubles: Record<Unfit['why'], Trouble> = {
  timeline: 'stale_primary',
  cluster: 'db_other_database',
  settings: 'db_unreachable',
  read_only: 'db_read_only',
}

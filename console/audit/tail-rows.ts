import type { AuditStreamItem } from '../../src/client/audit-stream.ts'
import type { Event } from '../api/event-rows.tsx'

export type Row =
  | { kind: 'event'; event: Event }
  /** Rows that retention removed before they could be read. */
  | { kind: 'gap'; from: number; until: number }
  | { kind: 'lost'; after: number | null; wait_s: number }
  /** Too many to show one by one; they are in the log. */
  | { kind: 'more'; count: number; until: number }

/** Max rows that are kept, and that wait while the view is paused. */
export const kept = 5000
/** Beyond this many per second, rows are counted instead of shown. */
const perSecond = 200

/**
 * The newest rows, oldest first. While paused it holds new rows back; those that no longer fit are read again on
 * resuming.
 */
export function createTail(now: () => number = () => performance.now()) {
  let rows: Row[] = []
  let held: Row[] = []
  let [isPaused, isReading] = [false, false]
  /** Rows that came while paused. */
  let newer = 0
  /** Numbers of the newest row received, and of the newest that is kept or held. */
  let [newest, reached] = [0, 0]
  let [second, count] = [Number.NEGATIVE_INFINITY, 0]

  const append = (more: readonly Row[]): void => {
    rows = [...rows, ...more].slice(-kept)
  }
  const show = (row: Row, seq: number): void => {
    reached = seq
    if (now() - second >= 1000) [second, count] = [now(), 0]
    count += 1
    const last = rows.at(-1)
    if (count <= perSecond || row.kind !== 'event') rows.push(row)
    else if (last?.kind === 'more') rows[rows.length - 1] = { ...last, count: last.count + 1, until: seq }
    else rows.push({ kind: 'more', count: 1, until: seq })
    // Cutting at every row would move all rows each time.
    if (rows.length > kept * 1.2) append([])
  }

  const hold = (row: Row, seq: number): void => {
    newer += 1
    if (isReading || held.length >= kept) return
    held.push(row)
    reached = seq
  }

  return {
    get rows() {
      return rows
    },
    get newer() {
      return newer
    },
    get isPaused() {
      return isPaused
    },
    take(item: AuditStreamItem): void {
      const row: Row =
        item.type === 'gap'
          ? { kind: 'gap', from: item.after + 1, until: item.resumed_after }
          : { kind: 'event', event: item.params }
      newest = item.type === 'gap' ? item.resumed_after : item.seq
      // The read on resuming may have been ahead of the stream.
      if (newest <= reached) return
      if (!isPaused) show(row, newest)
      else hold(row, newest)
    },
    lost({ after, wait_ms }: { after: number | null; wait_ms: number }): void {
      const row: Row = { kind: 'lost', after, wait_s: Math.ceil(wait_ms / 1000) }
      if (!isPaused) rows.push(row)
      else if (held.length < kept) held.push(row)
    },
    pause(): void {
      isPaused = true
    },
    /** Ends once everything received meanwhile is shown, and throws if it could not be read. */
    async resume(read: (since_seq: number) => Promise<readonly Event[]>): Promise<void> {
      append(held)
      held = []
      isReading = true
      try {
        while (reached < newest) {
          const skipped = newest - kept - reached
          if (skipped > 0) append([{ kind: 'more', count: skipped, until: (reached += skipped) }])
          const events = await read(reached)
          append(events.map((event) => ({ kind: 'event', event })))
          reached = events.at(-1)?.seq ?? newest
        }
        isPaused = false
        newer = 0
      } finally {
        isReading = false
      }
    },
  }
}

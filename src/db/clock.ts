/**
 * The clock of the database, as far as this process knows it: its own, corrected by the skew measured last. What is
 * valid or over is decided by the database itself; this is for what must be judged without asking it.
 */
export type Clock = {
  /** Milliseconds since 1970. */
  now(): number
  /** How far the clock of this process is ahead. */
  readonly skewMs: number
  /** Takes the time that the database has just answered to a statement sent at `sentAt` by this process's clock. */
  measured(databaseMs: number, sentAt: number): void
}

/** A slower answer is too imprecise to measure the skew. */
const longestMs = 2_000

export function createClock(own: () => number = Date.now): Clock {
  let skewMs = 0
  return {
    now: () => own() - skewMs,
    get skewMs() {
      return skewMs
    },
    measured: (databaseMs, sentAt) => {
      const tookMs = own() - sentAt
      if (tookMs >= 0 && tookMs < longestMs) skewMs = Math.round(sentAt + tookMs / 2 - databaseMs)
    },
  }
}

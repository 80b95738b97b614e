/**
 * The clock of the database, as far as this process knows it: a monotonic clock set by the last measurement, because
 * the machine's clock may jump. The database itself decides what has expired; this clock is for what must be judged
 * without asking it.
 */
export type Clock = {
  /** Milliseconds since 1970. */
  now(): number
  /** How far the clock of this machine is ahead. */
  readonly skewMs: number
  /** Takes the time that the database has just answered to a statement sent at `sentAt` of `performance.now()`. */
  measured(databaseMs: number, sentAt: number): void
}

/** A slower answer is too imprecise to measure the time. */
const answerMaxMs = 2_000

export function createClock(): Clock {
  let zeroMs = Date.now() - performance.now()
  const now = (): number => Math.round(zeroMs + performance.now())
  return {
    now,
    get skewMs() {
      return Date.now() - now()
    },
    measured: (databaseMs, sentAt) => {
      const tookMs = performance.now() - sentAt
      if (tookMs < answerMaxMs) zeroMs = databaseMs - sentAt - tookMs / 2
    },
  }
}

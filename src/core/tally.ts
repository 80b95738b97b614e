/** What this process has answered since it began. Reasons are a closed set, so the map is bounded. */
export type Tally = {
  readonly started_at: string
  requests: number
  /** Requests that are being answered. */
  running: number
  readonly refusals: Map<string, number>
  /** A histogram of answer times since it was last cleared; `withinMs` reads it. */
  readonly durations: Uint32Array
}

/** Each bucket of durations is a fifth longer than the one before: the first holds 0.25 ms, the last minutes. */
const buckets = 80
const [shortest, ratio] = [0.25, 1.19]

export const createTally = (): Tally => ({
  started_at: new Date().toISOString(),
  requests: 0,
  running: 0,
  refusals: new Map(),
  durations: new Uint32Array(buckets),
})

/** Counts an answer; `reason` is undefined unless it was a refusal. */
export function countAnswer(tally: Tally, reason: string | undefined, ms: number): void {
  tally.requests++
  const bucket = Math.ceil(Math.log(ms / shortest) / Math.log(ratio))
  const at = Math.min(Math.max(bucket, 0), buckets - 1)
  tally.durations[at] = (tally.durations[at] as number) + 1
  if (reason !== undefined) tally.refusals.set(reason, (tally.refusals.get(reason) ?? 0) + 1)
}

/**
 * The time within which this share of the answers was given, overestimated by a fifth at most; null without answers.
 */
export function withinMs({ durations }: Pick<Tally, 'durations'>, share: number): number | null {
  let left = durations.reduce((all, count) => all + count, 0) * share
  if (left === 0) return null
  const at = durations.findIndex((count) => {
    left -= count
    return left <= 0
  })
  return Math.round(shortest * ratio ** at * 10) / 10
}

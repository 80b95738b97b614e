/** What this process has answered since it began. Reasons are a closed set, so the map is bounded. */
export type Tally = {
  readonly started_at: string
  requests: number
  readonly refusals: Map<string, number>
}

export const createTally = (): Tally => ({
  started_at: new Date().toISOString(),
  requests: 0,
  refusals: new Map(),
})

/** Counts an answer; `reason` is that of a refusal. */
export function countAnswer(tally: Tally, reason: string | undefined): void {
  tally.requests++
  if (reason !== undefined) tally.refusals.set(reason, (tally.refusals.get(reason) ?? 0) + 1)
}

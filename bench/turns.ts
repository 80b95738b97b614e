import { median, quantile } from './numbers.ts'

/** The milliseconds that one call took in a world, and the rows of its result. */
export type Figures = { median: number; p99: number; rows: number }
/** `ratio` is of the medians, `tail` of the 99th percentiles. */
export type Compared = { small: Figures; large: Figures; ratio: number; tail: number }
/** Resolves to the number of rows. */
export type Call = () => Promise<number>

/** PostgreSQL chooses between a generic and a custom plan after five runs. */
const warmRuns = 10

type Turns = {
  rounds: number
  /** A call stops once its rounds have taken longer than this, after three at the earliest. */
  limitMs?: number
  warm?: number
}

/** Alternates the same call between a small and a large world, so that a noisy machine disturbs both alike. */
export async function byTurns(small: Call, large: Call, turns: Turns): Promise<Compared> {
  const { rounds, limitMs = Number.POSITIVE_INFINITY, warm = warmRuns } = turns
  const worlds = [small, large].map((call) => ({ call, times: [] as number[], rows: 0 }))
  for (let run = 0; run < warm; run++) for (const { call } of worlds) await call()
  const begun = performance.now()
  for (let round = 0; round < rounds; round++) {
    if (round >= 3 && performance.now() - begun > limitMs) break
    for (const world of worlds) {
      const at = performance.now()
      world.rows = await world.call()
      world.times.push(performance.now() - at)
    }
  }
  const [a, b] = worlds.map(({ times, rows }) => ({
    median: median(times),
    p99: quantile(times, 0.99),
    rows,
  }))
  const compared = { small: a as Figures, large: b as Figures }
  const over = (of: 'median' | 'p99'): number => compared.large[of] / compared.small[of]
  return { ...compared, ratio: over('median'), tail: over('p99') }
}

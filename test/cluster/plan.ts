/** The order of the faults; the same seed always gives the same plan. */
export type Step = { faults: [string] | [string, string]; calmMs: number }
export type Part = 'node' | 'database' | 'wire'

/** Pseudo-random numbers from 0 to 1 (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let n = Math.imul(state ^ (state >>> 15), 1 | state)
    n = (n + Math.imul(n ^ (n >>> 7), 61 | n)) ^ n
    return ((n ^ (n >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Each fault alone, in random order, then random pairs; two faults of one part would only get in each other's way.
 * `count` is larger than what fits into the run.
 */
export function planOf(seed: number, faults: Record<string, { part: Part }>, count: number): Step[] {
  const random = randomOf(seed)
  const names = Object.keys(faults)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const partOf = (name: string) => faults[name]?.part
  const alone = names.map((name) => ({ name, at: random() })).sort((a, b) => a.at - b.at)
  const pair = (): Step['faults'] => {
    const one = pick(names)
    const others = names.filter((name) => partOf(name) !== partOf(one))
    return others.length > 0 ? [one, pick(others)] : [one]
  }
  return Array.from({ length: count }, (_, at) => ({
    faults: alone[at] ? [alone[at].name] : pair(),
    calmMs: 5_000 + Math.round(random() * 5_000),
  }))
}

/** `z` is positive if the first sample is larger; `p` is two-sided. */
export type MannWhitney = { u: number; z: number; p: number }

/**
 * The Mann-Whitney U test: the probability that two samples of one distribution differ in rank as much as these.
 * Uses the normal approximation with corrections for ties and continuity, accurate enough from 20 values each.
 */
export function mannWhitney(first: readonly number[], second: readonly number[]): MannWhitney {
  const [n, m] = [first.length, second.length]
  const sorted = [
    ...first.map((value) => ({ value, isFirst: true })),
    ...second.map((value) => ({ value, isFirst: false })),
  ].sort((a, b) => a.value - b.value)
  let rankSum = 0
  let ties = 0
  for (let from = 0, to = 0; from < sorted.length; from = to) {
    while (to < sorted.length && sorted[to]?.value === sorted[from]?.value) to++
    const equal = to - from
    const rank = (from + 1 + to) / 2
    rankSum += rank * sorted.slice(from, to).filter(({ isFirst }) => isFirst).length
    ties += equal ** 3 - equal
  }
  const u = rankSum - (n * (n + 1)) / 2
  const all = n + m
  const deviation = Math.sqrt(((n * m) / 12) * (all + 1 - ties / (all * (all - 1))))
  const distance = u - (n * m) / 2
  // All values are equal, so the samples do not differ.
  if (deviation === 0) return { u, z: 0, p: 1 }
  const z = (Math.sign(distance) * Math.max(0, Math.abs(distance) - 0.5)) / deviation
  return { u, z, p: erfc(Math.abs(z) / Math.SQRT2) }
}

/** The complementary error function for x ≥ 0, with an error below 1.2e-7 (Numerical Recipes, erfcc). */
function erfc(x: number): number {
  const t = 1 / (1 + x / 2)
  const coefficients = [
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196,
    1.00002368, -1.26551223,
  ]
  return t * Math.exp(coefficients.reduce((sum, one) => sum * t + one, 0) - x * x)
}

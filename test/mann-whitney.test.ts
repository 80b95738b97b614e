import { describe, expect, test } from 'vitest'
import { mannWhitney } from '../bench/mann-whitney.ts'

const sequence = (length: number, from = 0, step = 1) =>
  Array.from({ length }, (_, index) => from + index * step)

describe('the Mann-Whitney U test', () => {
  test('gives the values of SciPy for its example', () => {
    // scipy.stats.mannwhitneyu(males, females, method='asymptotic')
    const { u, z, p } = mannWhitney([19, 22, 16, 29, 24], [20, 11, 17, 12])
    expect(u).toBe(17)
    expect(z).toBeCloseTo(1.59217, 5)
    expect(p).toBeCloseTo(0.1113468865, 6)
  })

  test('corrects for ties', () => {
    // scipy gives p; ranks 1, 3, 3, 5.5 against 3, 5.5, 7.5, 7.5; variance 16 / 12 * (9 - 36 / 56).
    const { u, z, p } = mannWhitney([1, 2, 2, 3], [2, 3, 4, 4])
    expect(u).toBe(2.5)
    expect(z).toBeCloseTo(-1.49786, 5)
    expect(p).toBeCloseTo(0.1341691802, 6)
  })

  test('is the same both ways round but for the sign', () => {
    const [one, other] = [sequence(30), sequence(40, 3)]
    const [forth, back] = [mannWhitney(one, other), mannWhitney(other, one)]
    expect(forth.u + back.u).toBe(1200)
    expect(forth.z).toBeCloseTo(-back.z, 12)
    expect(forth.p).toBeCloseTo(back.p, 12)
  })

  test('finds no difference between interleaved samples, nor where all is equal', () => {
    expect(mannWhitney(sequence(400, 0, 2), sequence(400, 1, 2)).p).toBeGreaterThan(0.9)
    expect(mannWhitney([5, 5, 5], [5, 5])).toEqual({ u: 3, z: 0, p: 1 })
  })

  test('finds a shift of a tenth of the spread in 400 values each', () => {
    expect(mannWhitney(sequence(400), sequence(400, 40.5)).p).toBeLessThan(0.001)
  })
})

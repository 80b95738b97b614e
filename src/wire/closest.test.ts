import fc from 'fast-check'
import { expect, test as it } from 'vitest'
import { closest } from './closest.ts'

/** The definition of the Levenshtein distance. */
const distance = ([a, ...moreA]: string[], [b, ...moreB]: string[]): number => {
  if (a === undefined || b === undefined)
    return [a, ...moreA, b, ...moreB].filter((one) => one !== undefined).length
  if (a === b) return distance(moreA, moreB)
  return 1 + Math.min(distance(moreA, moreB), distance(moreA, [b, ...moreB]), distance([a, ...moreA], moreB))
}

it('suggests the first of the names with the fewest typos, at most two', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '_'), maxLength: 6 })
  fc.assert(
    fc.property(name, fc.array(name, { maxLength: 5 }), (sent, names) => {
      const counts = names.map((one) => distance([...sent], [...one]))
      const fewest = Math.min(...counts)
      expect(closest(sent, names)).toBe(fewest > 2 ? undefined : names[counts.indexOf(fewest)])
    }),
    { numRuns: 2000 },
  )
})

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RowHeights } from './row-heights.ts'

it('rows begin where the heights of those before them add up, and each offset has its row', () => {
  const size = fc.integer({ min: 1, max: 300 })
  const key = fc.stringMatching(/^[a-z]{1,3}$/)
  const step = fc.oneof(
    fc.record({ keys: fc.uniqueArray(key, { maxLength: 30 }) }),
    fc.record({ index: fc.nat(29), size }),
    fc.record({ usual: size }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), fc.nat(4000), (steps, offset) => {
      const heights = new RowHeights()
      let [keys, usual, seen] = [[] as string[], 40, new Map<string, number>()]
      for (const step of steps) {
        if ('keys' in step) {
          keys = step.keys
          heights.fit(keys.length, (index) => keys[index] as string)
        } else if ('index' in step) {
          const key = keys[step.index]
          if (key !== undefined) seen.set(key, step.size)
          heights.set(step.index, step.size)
        } else {
          seen = new Map()
          usual = step.usual
          heights.forget(usual)
        }
        const starts = [0]
        for (const key of keys) starts.push((starts.at(-1) as number) + (seen.get(key) ?? usual))
        expect(starts.map((_, index) => heights.start(index))).toEqual(starts)
        expect(heights.total).toBe(starts.at(-1))
        const at = starts.slice(0, -1).findLastIndex((start) => start <= offset)
        expect(heights.at(offset)).toBe(Math.max(0, at))
        expect(heights.at(-1)).toBe(0)
      }
    }),
  )
})

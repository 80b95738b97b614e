import { expect, it } from 'vitest'
import { planOf } from './plan.ts'

const faults = {
  kill: { part: 'node' },
  term: { part: 'node' },
  switchover: { part: 'database' },
  cut: { part: 'wire' },
} as const

it('a seed gives the same plan each time, another seed another', () => {
  expect(planOf(1, faults, 30)).toEqual(planOf(1, faults, 30))
  expect(planOf(1, faults, 30)).not.toEqual(planOf(2, faults, 30))
})

it('each fault comes alone, then pairs of different parts', () => {
  const steps = planOf(7, faults, 40)
  expect(steps.slice(0, 4).map((step) => step.faults)).toEqual(
    expect.arrayContaining(Object.keys(faults).map((name) => [name])),
  )
  for (const { faults: pair, calmMs } of steps.slice(4)) {
    const parts = pair.map((name) => faults[name as keyof typeof faults].part)
    expect(new Set(parts).size).toBe(2)
    expect(calmMs).toBeGreaterThanOrEqual(5_000)
  }
  expect(planOf(7, { kill: { part: 'node' } }, 3).map((step) => step.faults)).toEqual([
    ['kill'],
    ['kill'],
    ['kill'],
  ])
})

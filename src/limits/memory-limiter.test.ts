import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { chargeAll, refused, take } from '../../test/helpers/limiter-stores.ts'
import { createMemoryLimiter } from './memory-limiter.ts'

setFlagsFromString('--expose-gc')
const gc: () => void = runInNewContext('gc')

/** A limiter with a clock that only the test advances. */
function setUp(max: number, windowMs: number, keysMax?: number) {
  const clock = { ms: 5_000_000 }
  const limiter = createMemoryLimiter({ max, windowMs, now: () => clock.ms, ...(keysMax && { keysMax }) })
  return { clock, limiter, chargeAll: (key: string, times: number) => chargeAll(limiter, key, times) }
}

describe('when full', () => {
  test('the bucket charged longest ago goes, however full it is', async () => {
    const { chargeAll } = setUp(5, 900_000, 3)
    await chargeAll('blocked', 5)
    await chargeAll('little', 1)
    await chargeAll('half', 3)
    await chargeAll('new', 4)
    expect(await chargeAll('little', 9)).toBe(4)
    expect(await chargeAll('half', 9)).toBe(2)
    expect(await chargeAll('new', 9)).toBe(1)
    expect(await chargeAll('blocked', 9)).toBe(5)
  })

  test('a charge makes a bucket the newest; a refusal does not', async () => {
    const { chargeAll } = setUp(2, 900_000, 2)
    await chargeAll('charged', 1)
    await chargeAll('blocked', 2)
    await chargeAll('charged', 1)
    expect(await chargeAll('blocked', 3)).toBe(0)
    await chargeAll('new', 1)
    expect(await chargeAll('charged', 1)).toBe(0)
  })

  test('a slot whose bucket was evicted still becomes a charge', async () => {
    const { limiter, chargeAll } = setUp(2, 900_000, 1)
    const held = await take(limiter, 'a')
    const dropped = await take(limiter, 'a')
    await chargeAll('b', 1)
    await held.charge()
    await dropped.drop()
    expect(await chargeAll('a', 9)).toBe(1)
  })

  test('evicted while held, a key that ends over its max waits until one attempt fits again', async () => {
    const { clock, limiter, chargeAll } = setUp(1, 10_000, 1)
    const first = await take(limiter, 'a')
    await chargeAll('b', 1)
    await chargeAll('a', 1)
    clock.ms += 4_000
    await first.charge()
    expect(await limiter.hold('a')).toEqual(refused(10))
    clock.ms += 10_000
    expect((await limiter.hold('a')).ok).toBe(true)
  })

  test('the old charges of an evicted key do not free its new bucket when they end', async () => {
    const { clock, chargeAll } = setUp(2, 10_000, 1)
    await chargeAll('a', 1)
    await chargeAll('b', 1)
    clock.ms += 5_000
    await chargeAll('a', 2)
    clock.ms += 5_000
    expect(await chargeAll('a', 1)).toBe(0)
  })

  test('100 000 keys are kept by default', async () => {
    const { chargeAll } = setUp(2, 900_000)
    for (let i = 0; i < 100_000; i++) await chargeAll(`key ${i}`, 1)
    expect(await chargeAll('key 0', 2)).toBe(1)
    await chargeAll('one more', 1)
    expect(await chargeAll('key 1', 2)).toBe(2)
  })
})

test('two hundred thousand keys, once each, take only the memory of the buckets that are kept', async () => {
  const { limiter } = setUp(100, 900_000, 10_000)
  const memory = () => {
    gc()
    return process.memoryUsage().heapUsed
  }
  for (let i = 0; i < 20_000; i++) await limiter.charge(`key ${i}`)
  const full = memory()
  for (let i = 0; i < 200_000; i++) await limiter.charge(`other key ${i}`)
  expect(memory() - full).toBeLessThan(5_000_000)
})

test('expired buckets are removed as other keys come, a bounded number at a time', async () => {
  const { clock, limiter } = setUp(2, 10_000)
  for (let i = 0; i < 50_000; i++) await limiter.charge(`key ${i}`)
  clock.ms += 10_000
  const gone = () => limiter.charge('another')
  const memory = () => {
    gc()
    return process.memoryUsage().heapUsed
  }
  const before = memory()
  for (let i = 0; i < 60; i++) await gone()
  expect(before - memory()).toBeGreaterThan(5_000_000)
})

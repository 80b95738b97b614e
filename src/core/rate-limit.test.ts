import { describe, expect, test } from 'vitest'
import { chargeAll, refused, take } from '../../test/helpers/limiter-stores.ts'
import { createMemoryLimiter, offLimiter } from './rate-limit.ts'

/** A limiter on a clock that only the test moves. */
function setUp(max: number, windowMs: number, keysMax?: number) {
  const clock = { ms: 5_000_000 }
  const limiter = createMemoryLimiter({ max, windowMs, now: () => clock.ms, ...(keysMax && { keysMax }) })
  return { clock, limiter, chargeAll: (key: string, times: number) => chargeAll(limiter, key, times) }
}

test('the limiter that is off admits everything', async () => {
  for (let i = 0; i < 1000; i++) {
    expect(await offLimiter.charge('a')).toEqual({ ok: true })
    const held = await take(offLimiter, 'a')
    await held.charge()
    await held.drop()
  }
  await offLimiter.clear('a')
})

describe('when full', () => {
  test('the bucket nearest to empty goes, a blocked one last', async () => {
    const { chargeAll } = setUp(5, 900_000, 3)
    await chargeAll('half', 3)
    await chargeAll('blocked', 5)
    await chargeAll('little', 1)
    await chargeAll('new', 4)
    expect(await chargeAll('half', 9)).toBe(2)
    expect(await chargeAll('new', 9)).toBe(1)
    expect(await chargeAll('blocked', 9)).toBe(0)
  })

  test('held slots count as fullness', async () => {
    const { limiter, chargeAll } = setUp(5, 900_000, 2)
    const slots = await Promise.all(Array.from({ length: 4 }, () => take(limiter, 'held')))
    await chargeAll('charged', 3)
    await chargeAll('new', 1)
    for (const slot of slots) await slot.charge()
    expect(await chargeAll('held', 9)).toBe(1)
  })

  test('charges that left make a bucket the emptier one', async () => {
    const { clock, chargeAll } = setUp(5, 10_000, 2)
    await chargeAll('was full', 4)
    clock.ms += 9_000
    await chargeAll('was full', 1)
    await chargeAll('two', 2)
    clock.ms += 2_000
    await chargeAll('new', 3)
    expect(await chargeAll('two', 9)).toBe(3)
  })

  test('only blocked ones left: the one blocked first goes', async () => {
    const { chargeAll } = setUp(2, 900_000, 2)
    await chargeAll('first', 2)
    await chargeAll('second', 2)
    await chargeAll('new', 2)
    expect(await chargeAll('second', 1)).toBe(0)
    expect(await chargeAll('new', 1)).toBe(0)
    expect(await chargeAll('first', 9)).toBe(2)
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

  test('a flood of ten times the keys does not free a blocked one', async () => {
    const { chargeAll } = setUp(5, 900_000, 1_000)
    await chargeAll('blocked', 5)
    await chargeAll('nearly', 4)
    for (let i = 0; i < 10_000; i++) await chargeAll(`flood ${i}`, 1)
    expect(await chargeAll('blocked', 1)).toBe(0)
    expect(await chargeAll('nearly', 2)).toBe(1)
  })

  test('100 000 keys are kept by default', async () => {
    const { chargeAll } = setUp(2, 900_000)
    for (let i = 0; i < 100_000; i++) await chargeAll(`key ${i}`, 1)
    expect(await chargeAll('key 0', 2)).toBe(1)
    await chargeAll('one more', 1)
    expect(await chargeAll('key 1', 2)).toBe(2)
  })
})

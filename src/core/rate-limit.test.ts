import { describe, expect, test } from 'vitest'
import { createMemoryLimiter, type Held, offLimiter } from './rate-limit.ts'

/** A limiter on a clock that only the test moves. */
function setUp(max: number, windowMs: number, keysMax?: number) {
  const clock = { ms: 5_000_000 }
  const limiter = createMemoryLimiter({ max, windowMs, now: () => clock.ms, ...(keysMax && { keysMax }) })
  return { clock, limiter, chargeAll: async (key: string, times: number) => charges(limiter, key, times) }
}
async function charges(limiter: ReturnType<typeof createMemoryLimiter>, key: string, times: number) {
  const answers = []
  for (let i = 0; i < times; i++) answers.push(await limiter.charge(key))
  return answers.filter(({ ok }) => ok).length
}
const refused = (retryAfter: number) => ({ ok: false, retryAfter })

/** Takes a slot that must be there. */
async function take(limiter: ReturnType<typeof createMemoryLimiter>, key: string): Promise<Held> {
  const held = await limiter.hold(key)
  if (!held.ok) throw new Error('refused')
  return held
}

describe('an attempt', () => {
  test('is admitted up to max charges in the window; a refused one does not extend the block', async () => {
    const { clock, limiter, chargeAll } = setUp(5, 900_000)
    expect(await chargeAll('a', 5)).toBe(5)
    expect(await limiter.hold('a')).toEqual(refused(900))
    clock.ms += 899_000
    for (let i = 0; i < 50; i++) expect(await limiter.charge('a')).toEqual(refused(1))
    clock.ms += 999
    expect(await limiter.hold('a')).toEqual(refused(1))
    clock.ms += 1
    expect(await limiter.charge('a')).toEqual({ ok: true })
  })

  test('is refused until the oldest charge leaves, in whole seconds rounded up', async () => {
    const { clock, limiter } = setUp(2, 10_000)
    await limiter.charge('a')
    clock.ms += 2_500
    await limiter.charge('a')
    expect(await limiter.charge('a')).toEqual(refused(8))
    clock.ms += 7_400
    expect(await limiter.charge('a')).toEqual(refused(1))
    clock.ms += 1_000
    expect(await limiter.charge('a')).toEqual({ ok: true })
    expect(await limiter.charge('a')).toEqual(refused(2))
  })

  test('of one key does not touch another', async () => {
    const { limiter, chargeAll } = setUp(5, 900_000)
    await chargeAll('a', 5)
    expect(await chargeAll('b', 6)).toBe(5)
    expect(await limiter.charge('__proto__')).toEqual({ ok: true })
  })
})

describe('held slots', () => {
  test('count: of 20 parallel attempts exactly 5 pass, the others may retry after 1 s', async () => {
    const { limiter } = setUp(5, 900_000)
    const answers = await Promise.all(Array.from({ length: 20 }, () => limiter.hold('a')))
    expect(answers.filter(({ ok }) => ok)).toHaveLength(5)
    expect(answers.filter(({ ok }) => !ok)).toEqual(Array(15).fill(refused(1)))
    for (const held of answers) if (held.ok) await held.charge()
    expect(await limiter.hold('a')).toEqual(refused(900))
  })

  test('that are dropped cost nothing: 20 successes in a row all pass', async () => {
    const { limiter } = setUp(5, 900_000)
    for (let i = 0; i < 20; i++) await (await take(limiter, 'a')).drop()
  })

  test('fail, success, fail, success: the attempt after the fifth failure is refused', async () => {
    const { limiter } = setUp(5, 900_000)
    for (let failures = 0; failures < 5; failures++) {
      await (await take(limiter, 'a')).charge()
      if (failures < 4) await (await take(limiter, 'a')).drop()
    }
    expect(await limiter.hold('a')).toEqual(refused(900))
  })

  test('become charges as of the end of the attempt', async () => {
    const { clock, limiter } = setUp(1, 10_000)
    const held = await take(limiter, 'a')
    clock.ms += 60_000
    expect(await limiter.hold('a')).toEqual(refused(1))
    await held.charge()
    expect(await limiter.hold('a')).toEqual(refused(10))
  })

  test('are settled once, by the first call', async () => {
    const { limiter, chargeAll } = setUp(3, 10_000)
    const dropped = await take(limiter, 'dropped')
    await dropped.drop()
    await dropped.charge()
    expect(await chargeAll('dropped', 5)).toBe(3)
    const charged = await take(limiter, 'charged')
    await charged.charge()
    await charged.drop()
    await charged.drop()
    expect(await chargeAll('charged', 5)).toBe(2)
    const twice = await take(limiter, 'twice')
    await Promise.all([twice.charge(), twice.charge()])
    expect(await chargeAll('twice', 5)).toBe(2)
  })

  test('block for 1 s only where charges alone would not', async () => {
    const { limiter, chargeAll } = setUp(5, 900_000)
    await chargeAll('a', 4)
    const held = await take(limiter, 'a')
    expect(await limiter.hold('a')).toEqual(refused(1))
    await held.charge()
    expect(await limiter.hold('a')).toEqual(refused(900))
  })
})

test('clear forgets the charges of its key and leaves held slots', async () => {
  const { limiter, chargeAll } = setUp(3, 900_000)
  await chargeAll('a', 2)
  await chargeAll('b', 3)
  const held = await take(limiter, 'a')
  await limiter.clear('a')
  await limiter.clear('unknown')
  expect(await chargeAll('a', 5)).toBe(2)
  await held.drop()
  expect(await chargeAll('a', 5)).toBe(1)
  expect(await chargeAll('b', 1)).toBe(0)
})

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

import { afterAll, describe, expect, test } from 'vitest'
import { pending, refused, stores, take, testLimiter } from '../../test/helpers/limiter-stores.ts'
import { testService } from '../testing/index.ts'

const service = await testService()
afterAll(() => service.close())

describe.each(stores)('in the store %s', (store) => {
  const setUp = (max: number, windowMs: number) => testLimiter(store, service, { max, windowMs })

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

    test('of one key does not affect another', async () => {
      const { limiter, chargeAll } = setUp(5, 900_000)
      await chargeAll('a', 5)
      expect(await chargeAll('b', 6)).toBe(5)
      expect(await limiter.charge('__proto__')).toEqual({ ok: true })
    })
  })

  describe('held slots', () => {
    test('count: of 20 parallel attempts exactly 5 pass, the others depend on the outcome of those', async () => {
      const { limiter } = setUp(5, 900_000)
      const answers = await Promise.all(Array.from({ length: 20 }, () => limiter.hold('a')))
      expect(answers.filter(({ ok }) => ok)).toHaveLength(5)
      expect(answers.filter(({ ok }) => !ok)).toEqual(Array(15).fill(pending))
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
      expect(await limiter.hold('a')).toEqual(pending)
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

    test('block an attempt that charges alone would admit, and it is pending', async () => {
      const { limiter, chargeAll } = setUp(5, 900_000)
      await chargeAll('a', 4)
      const held = await take(limiter, 'a')
      expect(await limiter.hold('a')).toEqual(pending)
      await held.charge()
      expect(await limiter.hold('a')).toEqual(refused(900))
    })
  })

  test('clear forgets the charges of its keys and leaves held slots', async () => {
    const { limiter, chargeAll } = setUp(3, 900_000)
    await chargeAll('a', 2)
    await chargeAll('b', 3)
    const held = await take(limiter, 'a')
    await limiter.clear('a', 'unknown')
    expect(await chargeAll('a', 5)).toBe(2)
    await held.drop()
    expect(await chargeAll('a', 5)).toBe(1)
    expect(await chargeAll('b', 1)).toBe(0)
  })

  test('count is of the charges in the window and of held slots', async () => {
    const { clock, limiter, chargeAll } = setUp(5, 10_000)
    expect(await limiter.count('a')).toBe(0)
    await chargeAll('a', 2)
    clock.ms += 5_000
    const [dropped, charged] = [await take(limiter, 'a'), await take(limiter, 'a')]
    expect(await limiter.count('a')).toBe(4)
    await dropped.drop()
    await charged.charge()
    expect(await limiter.count('a')).toBe(3)
    clock.ms += 5_000
    expect([await limiter.count('a'), await limiter.count('b')]).toEqual([1, 0])
  })
})

import { afterAll, describe, expect, test, vi } from 'vitest'
import { pending, refused, stores, take, testLimiter } from '../../test/helpers/limiter-stores.ts'
import { untilServed } from '../../test/helpers/outcome.ts'
import { testService } from '../testing/index.ts'
import type { Held, Limiter, Refused } from './limiter.ts'
import { withLines } from './line.ts'

const service = await testService()
afterAll(() => service.close())

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const busy = { data: { reason: 'busy', retry_after: 1 } }

describe.each(stores)('attempts of one key at once, in the store %s', (store) => {
  const setUp = (max: number) => {
    const { limiter, clock } = testLimiter(store, service, { max, windowMs: 900_000 })
    return { limiter: withLines(limiter), clock }
  }
  /** The outcomes of this many concurrent attempts; `most`: how many ran at the same time. */
  const run = async (limiter: Limiter, count: number, isWrong: (i: number) => boolean) => {
    let underWay = 0
    let most = 0
    const outcomes = await Promise.all(
      times(count, async (i) => {
        const slot = await untilServed(() => limiter.hold('a'))
        if (!slot.ok) return 'refused'
        most = Math.max(most, ++underWay)
        await new Promise(setImmediate)
        underWay--
        await untilServed(() => (isWrong(i) ? slot.charge() : slot.drop()))
        return isWrong(i) ? 'wrong' : 'right'
      }),
    )
    const count_of = (what: string) => outcomes.filter((one) => one === what).length
    return { right: count_of('right'), wrong: count_of('wrong'), refused: count_of('refused'), most }
  }

  test('500 right ones all pass, never more than the budget at once', async () => {
    const { limiter } = setUp(5)
    const { most, ...seen } = await run(limiter, 500, () => false)
    expect(seen).toEqual({ right: 500, wrong: 0, refused: 0 })
    expect(most).toBeLessThanOrEqual(5)
  })

  test('500 wrong ones: exactly the budget passes, the others get the time until the next attempt', async () => {
    const { limiter } = setUp(5)
    expect(await run(limiter, 500, () => true)).toMatchObject({ right: 0, wrong: 5, refused: 495 })
    expect(await limiter.hold('a')).toEqual(refused(900))
  })

  test('right and wrong ones mixed: the wrong ones use up the budget and do not exceed it', async () => {
    const { limiter } = setUp(5)
    const { wrong, refused: turnedAway } = await run(limiter, 300, (i) => i % 3 === 0)
    expect(wrong).toBe(5)
    expect(turnedAway).toBeGreaterThan(0)
    expect(await limiter.hold('a')).toEqual(refused(900))
  })

  test('are admitted first come, first served, even when a new one arrives', async () => {
    const { limiter } = setUp(1)
    const order: string[] = []
    const attempt = async (name: string): Promise<void> => {
      const slot = await take(limiter, 'a')
      order.push(name)
      await slot.drop()
    }
    const first = await take(limiter, 'a')
    const waiting = ['b', 'c', 'd'].map(attempt)
    await new Promise((resolve) => setTimeout(resolve, 20))
    const newcomer = first.drop().then(() => attempt('newcomer'))
    await Promise.all([...waiting, newcomer])
    expect(order).toHaveLength(4)
    expect(order.at(-1)).toBe('newcomer')
  })

  test('do not delay those of another key', async () => {
    const { limiter } = setUp(1)
    const first = await take(limiter, 'a')
    const waiting = limiter.hold('a')
    expect((await limiter.hold('b')).ok).toBe(true)
    await first.charge()
    expect(await waiting).toEqual(refused(900))
  })
})

describe('a line', () => {
  test('notices attempts that end on another node', async () => {
    const one = testLimiter('postgres', service, { max: 1, windowMs: 900_000 })
    const near = withLines(one.limiter)
    // The lines of this node know nothing of the attempt on the other node.
    const far = await take(one.limiter, 'a')
    const waiting = near.hold('a')
    await far.drop()
    expect(await waiting).toMatchObject({ ok: true })
  })

  test('holds 1000 attempts and is busy for more, for that key alone', async () => {
    const { limiter } = testLimiter('memory', service, { max: 1, windowMs: 900_000 })
    const lines = withLines(limiter)
    const first = await take(lines, 'a')
    const waiting = times(1000, () => lines.hold('a'))
    await new Promise(setImmediate)
    await expect(lines.hold('a')).rejects.toMatchObject(busy)
    expect((await lines.hold('b')).ok).toBe(true)
    await first.charge()
    expect(await Promise.all(waiting)).toEqual(times(1000, () => refused(900)))
  })

  test('that does not move for five seconds is refused, and the next attempt starts a new one', async () => {
    vi.useFakeTimers()
    try {
      let answer: Held | Refused = pending as Refused
      const stuck: Limiter = {
        hold: async () => answer,
        charge: async () => ({ ok: true }),
        spend: async () => {},
        clear: async () => {},
        count: async () => 0,
      }
      const lines = withLines(stuck)
      const waiting = Promise.all([lines.hold('a'), lines.hold('a')])
      await vi.advanceTimersByTimeAsync(6_000)
      expect(await waiting).toEqual([pending, pending])
      answer = { ok: true, charge: async () => {}, drop: async () => {} }
      expect((await lines.hold('a')).ok).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })

  test('rejects with the error of the store', async () => {
    let asked = 0
    const failing: Limiter = {
      hold: async () => {
        if (asked++ > 0) throw new Error('the store is away')
        return pending as Refused
      },
      charge: async () => ({ ok: true }),
      spend: async () => {},
      clear: async () => {},
      count: async () => 0,
    }
    await expect(withLines(failing).hold('a')).rejects.toThrow('the store is away')
  })
})

import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { pending, refused, stores, testLimiter } from '../../test/helpers/limiter-stores.ts'
import { testService } from '../testing/index.ts'
import type { Held } from './limiter.ts'

const service = await testService()
afterAll(() => service.close())

/** How often to try each property; the database takes a thousand times as long as memory. */
const runs = {
  memory: { exact: 500, coarse: 200, leastBursts: 0 },
  postgres: { exact: 40, coarse: 8, leastBursts: 15 },
}

type Step =
  | { do: 'wait'; ms: number }
  | { do: 'hold' | 'charge' | 'clear'; key: string }
  | { do: 'settle'; slot: number; charge: boolean }
const key = fc.constantFrom('a', 'b')
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('wait' as const), ms: fc.oneof(fc.nat(50), fc.nat(4_000)) }),
  fc.record({ do: fc.constantFrom('hold' as const, 'charge' as const), key }),
  fc.record({ do: fc.constant('settle' as const), slot: fc.nat(9), charge: fc.boolean() }),
  { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const), key }) },
)

describe.each(stores)('against a model, the store %s', (store) => {
  const setUp = (max: number, windowMs: number) => testLimiter(store, service, { max, windowMs })

  test('up to 100 charges: every answer is that of a plain list of timestamps', async () => {
    const windowMs = 5_000
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.array(step, { maxLength: 150 }),
        async (max, steps) => {
          const { clock, limiter } = setUp(max, windowMs)
          const model = new Map([...'ab'].map((name) => [name, { times: [] as number[], held: 0 }]))
          const slots: { held: Held; key: string }[] = []
          for (const next of steps) {
            if (next.do === 'wait') {
              clock.ms += next.ms
              continue
            }
            if (next.do === 'settle') {
              const [slot] = slots.splice(next.slot, 1)
              if (slot === undefined) continue
              await (next.charge ? slot.held.charge() : slot.held.drop())
              const state = model.get(slot.key)
              if (state === undefined) continue
              state.held--
              if (next.charge) state.times.push(clock.ms)
              continue
            }
            const state = model.get(next.key)
            if (state === undefined) continue
            if (next.do === 'clear') {
              await limiter.clear(next.key)
              state.times = []
              continue
            }
            const live = state.times.filter((time) => clock.ms - time < windowMs)
            const answer = await limiter[next.do](next.key)
            if (live.length + state.held < max) {
              expect(answer.ok).toBe(true)
              if (next.do === 'charge') state.times.push(clock.ms)
              else {
                state.held++
                slots.push({ held: answer as Held, key: next.key })
              }
            } else if (live.length < max) expect(answer).toEqual(pending)
            else
              expect(answer).toEqual(refused(Math.ceil(((live[0] as number) + windowMs - clock.ms) / 1000)))
          }
        },
      ),
      { numRuns: runs[store].exact },
    )
  })

  test('above 100 never more than max in any window, and a charge leaves at most one sub-window late', async () => {
    const windowMs = 3_000
    const subWindow = windowMs / 30
    const burst = fc.record({
      wait: fc.oneof(fc.nat(60), fc.nat(900), fc.constantFrom(50, 100, 2_900, 3_000)),
      times: fc.integer({ min: 1, max: 60 }),
    })
    let refusals = 0
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 101, max: 140 }),
        fc.array(burst, { minLength: runs[store].leastBursts, maxLength: 60 }),
        async (max, bursts) => {
          const { clock, limiter } = setUp(max, windowMs)
          const admitted: number[] = []
          const within = (ms: number) => admitted.filter((time) => clock.ms - time < ms).length
          for (const { wait, times } of bursts) {
            clock.ms += wait
            for (let i = 0; i < times; i++) {
              const answer = await limiter.charge('a')
              if (answer.ok) {
                admitted.push(clock.ms)
                expect(within(windowMs)).toBeLessThanOrEqual(max)
                continue
              }
              refusals++
              expect(within(windowMs + subWindow)).toBeGreaterThanOrEqual(max)
              expect(answer.retryAfter).toBeGreaterThanOrEqual(1)
              if (i > 0) break
              // Checks the promise of retry_after on the limiter itself.
              clock.ms += answer.retryAfter * 1000
              expect(await limiter.charge('a')).toEqual({ ok: true })
              admitted.push(clock.ms)
              expect(within(windowMs)).toBeLessThanOrEqual(max)
            }
          }
        },
      ),
      { numRuns: runs[store].coarse },
    )
    expect(refusals).toBeGreaterThan(store === 'memory' ? 100 : 0)
  })

  test.each([100, 150, 200])(
    'the last charge of a sub-window stays its whole window (%d ms after the first)',
    async (later) => {
      const { clock, limiter, chargeAll } = setUp(101, 3_000)
      await limiter.charge('a')
      clock.ms += later
      await chargeAll('a', 100)
      clock.ms += 3_000 - 1
      expect(await chargeAll('a', 101)).toBeLessThanOrEqual(1)
    },
  )

  test('1200 in 900 s: the 1201st is refused, all come back a window and a sub-window later', async () => {
    const { clock, limiter, chargeAll } = setUp(1200, 900_000)
    expect(await chargeAll('a', 1201)).toBe(1200)
    clock.ms += 899_999
    expect(await chargeAll('a', 1)).toBe(0)
    clock.ms += 30_001
    expect(await chargeAll('a', 1201)).toBe(1200)
    expect((await limiter.hold('b')).ok).toBe(true)
  })
})

import { busy } from '../errors.ts'
import type { Held, Limiter, Refused } from './limiter.ts'

/** Attempts per key that may wait on a node; more are refused as `busy`. */
const lineMax = 1000
/**
 * How often to ask the store while no attempt ends on this node: attempts that end on other nodes go unnoticed here.
 */
const lookMs = 100
/** A line that has not moved for this long is refused: the running attempts hang, or their process died. */
const stallMs = 5_000

type Waiter = PromiseWithResolvers<Held | Refused>
type Line = {
  waiting: Waiter[]
  /** Attempts of the key that ended on this node; shows whether one ended while the store was being asked. */
  ended: number
  wake: () => void
}

/**
 * Makes attempts wait, first come, first served, while only slots of running attempts fill the bucket. So any
 * number of right passwords at once succeeds, and no more wrong ones are tried than the budget allows.
 */
export function withLines(limiter: Limiter): Limiter {
  const lines = new Map<string, Line>()

  const ending = (key: string, settle: () => Promise<void>) => async (): Promise<void> => {
    await settle()
    const line = lines.get(key)
    if (line === undefined) return
    line.ended++
    line.wake()
  }
  const announced = (key: string, held: Held): Held => ({
    ok: true,
    charge: ending(key, held.charge),
    drop: ending(key, held.drop),
  })
  const join = (key: string): Promise<Held | Refused> => {
    const waiter = Promise.withResolvers<Held | Refused>()
    const line = lines.get(key)
    if (line === undefined) {
      const made: Line = { waiting: [waiter], ended: 0, wake: () => {} }
      lines.set(key, made)
      void serve(limiter, key, made, () => lines.delete(key))
    } else if (line.waiting.length < lineMax) line.waiting.push(waiter)
    else throw busy()
    return waiter.promise
  }

  return {
    ...limiter,
    async hold(key) {
      const first = lines.has(key) ? undefined : await limiter.hold(key)
      const answer = first === undefined || isPending(first) ? await join(key) : first
      return answer.ok ? announced(key, answer) : answer
    },
  }
}

const isPending = (answer: Held | Refused): boolean => !answer.ok && answer.isPending === true

/** Admits waiting attempts one by one until the line is empty or the budget is used up. */
async function serve(limiter: Limiter, key: string, line: Line, close: () => void): Promise<void> {
  let moved = performance.now()
  try {
    while (line.waiting.length > 0) {
      const { ended } = line
      const answer = await limiter.hold(key)
      if (answer.ok) {
        moved = performance.now()
        line.waiting.shift()?.resolve(answer)
      } else if (!isPending(answer) || performance.now() - moved > stallMs) {
        for (const waiter of line.waiting.splice(0)) waiter.resolve(answer)
      } else if (line.ended === ended) await nextEnd(line)
    }
  } catch (error) {
    for (const waiter of line.waiting.splice(0)) waiter.reject(error)
  } finally {
    // In the same turn that found the line empty, so that a later attempt starts a new line.
    close()
  }
}

const nextEnd = (line: Line): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, lookMs)
    line.wake = () => {
      clearTimeout(timer)
      resolve()
    }
  })

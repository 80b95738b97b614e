import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { createFairQueue } from './fair-queue.ts'

/** One queue per process, because all requests share its event loop. */
const arrived = createFairQueue(1, Number.POSITIVE_INFINITY)

/**
 * After an input that took longer than `longMs`, the next waits so many times as long, but no longer than `restMax`: a
 * server that stops answers those that wait.
 */
const [longMs, restTimes, restMax] = [50, 3, 1_000]

/**
 * Looks at one large input per turn of the event loop; sources (`from`) take turns. Parsing one may take tenths of a
 * second and many times its size in memory; requests of others are served in between. They need several turns, so
 * they have most of the time however many large inputs wait.
 */
export const inTurn = (from: string, look: () => void): void =>
  void arrived.run(from, async () => {
    await turn()
    const began = performance.now()
    look()
    // A body is parsed in the microtasks behind, which run before this resolves.
    await new Promise((resolve) => process.nextTick(resolve))
    const took = performance.now() - began
    if (took > longMs) await delay(Math.min(restTimes * took, restMax), undefined, { ref: false })
  })

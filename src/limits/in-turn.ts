import { setImmediate as turn } from 'node:timers/promises'
import { createFairQueue } from './fair-queue.ts'

/** One queue per process, because all requests share its event loop. */
const arrived = createFairQueue(1, Number.POSITIVE_INFINITY)

/**
 * Looks at one large input per turn of the event loop; sources (`from`) take turns. Parsing one may take tenths of a
 * second and many times its size in memory; requests of others are served in between.
 */
export const inTurn = (from: string, look: () => void): void =>
  void arrived.run(from, async () => {
    await turn()
    look()
  })

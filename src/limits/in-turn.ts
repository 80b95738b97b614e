import { setImmediate as turn } from 'node:timers/promises'
import { createFairQueue } from './fair-queue.ts'

/** One for all of the process, whose event loop they share. */
const arrived = createFairQueue(1, Number.POSITIVE_INFINITY)

/**
 * Looks at what is large one in a turn of the event loop; sources (`from`) take turns. Parsing each may take tenths of a
 * second, and what is parsed many times as much memory; the requests of others come between.
 */
export const inTurn = (from: string, look: () => void): void =>
  void arrived.run(from, async () => {
    await turn()
    look()
  })

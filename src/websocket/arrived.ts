import { setImmediate as turn } from 'node:timers/promises'
import { createFairQueue } from '../limits/fair-queue.ts'

const arrived = createFairQueue(1, Number.POSITIVE_INFINITY)

/**
 * Looks at large messages one in a turn of the event loop; accounts take turns. Parsing each may take tenths of a
 * second, and what is parsed many times as much memory.
 */
export const inTurn = (account_id: string, look: () => void): void =>
  void arrived.run(account_id, async () => {
    await turn()
    look()
  })

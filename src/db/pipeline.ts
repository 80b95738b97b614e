import pg from 'pg'
import { isWornOut, noteOpened } from './statement-names.ts'

type Compiled = { name: string; text: string; values: unknown[] }

/** Two connections serve short reads at the speed of many: answers come in order, nobody waits a round trip. */
const connections = 2

/**
 * Point reads on shared, pipelined connections. A lost connection rejects what is under way on it and
 * is opened anew by the next read.
 */
export function pipelinedReader(settings: pg.ClientConfig, onError: (error: unknown, what: string) => void) {
  const slots: (Promise<pg.Client> | undefined)[] = Array.from({ length: connections })
  let next = 0
  let closed = false

  const open = (slot: number): Promise<pg.Client> => {
    const client = new pg.Client(settings)
    noteOpened(client)
    const drop = () => {
      if (slots[slot] === opened) slots[slot] = undefined
    }
    client.on('error', (error) => {
      drop()
      onError(error, 'a reading database connection ended')
    })
    client.on('end', drop)
    const opened: Promise<pg.Client> = client.connect().then(
      () => client,
      (error) => {
        drop()
        throw error
      },
    )
    slots[slot] = opened
    return opened
  }

  return {
    query: async (compiled: Compiled): Promise<unknown[]> => {
      if (closed) throw new Error('client was closed')
      const slot = next++ % connections
      const opened = slots[slot] ?? open(slot)
      const client = await opened
      if (isWornOut(client) && slots[slot] === opened) {
        slots[slot] = undefined
        // Not before those have sent theirs that were waiting for it just now; it ends when all are answered.
        setImmediate(() => client.end().catch(() => {}))
      }
      return (await client.query(compiled)).rows
    },
    close: async (): Promise<void> => {
      closed = true
      await Promise.all(slots.map(async (slot) => (await slot?.catch(() => undefined))?.end()))
    },
  }
}

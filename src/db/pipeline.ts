import pg from 'pg'
import { isWornOut, noteOpened } from './statement-names.ts'

type Compiled = { name: string; text: string; values: unknown[] }

/** Enough for short reads: a pipelined connection sends the next one without waiting for an answer. */
const connections = 2

/**
 * Point reads on shared, pipelined connections. A lost connection rejects the reads in flight on it; the next
 * read opens a new one.
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
        // Deferred, so that reads which awaited this connection can still send; end() waits for their answers.
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

import { once } from 'node:events'
import type { Socket } from 'node:net'

/** Connections that only count what they receive. */
export type Readers = {
  /** Resolves when each of them has received so many. */
  have(count: number): Promise<void>
  close(): Promise<void>
}

/** Readers for these connections; their code calls `took` with the index of a connection for each item it receives. */
export function countingReaders(sockets: Socket[], count: number): Readers & { took(reader: number): void } {
  const counts = new Array<number>(count).fill(0)
  let wanted = 0
  let behind = 0
  let reached = (): void => {}
  return {
    took: (reader) => {
      const own = (counts[reader] as number) + 1
      counts[reader] = own
      if (own === wanted && --behind === 0) reached()
    },
    have: (each) =>
      new Promise((resolve) => {
        wanted = each
        behind = counts.filter((one) => one < each).length
        reached = resolve
        if (behind === 0) resolve()
      }),
    close: async () => {
      const closed = sockets.map((socket) => once(socket, 'close'))
      for (const socket of sockets) socket.destroy()
      await Promise.all(closed)
    },
  }
}

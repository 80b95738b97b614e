import { Readable } from 'node:stream'
import type pg from 'pg'
import { streamOf } from '../db/servers/dial.ts'

/** Lines, each with its line feed. The text is overwritten once the next portion is asked for. */
export type Portion = { text: Buffer; rows: number }

type Filled = { buffer: Buffer<ArrayBuffer>; used: number; rows: number }

/** Larger portions only cost memory. */
const portionBytes = 65_536
/** Max portions that wait for the consumer; beyond it the socket is not read, and the database waits. */
const waitingMax = 4

/**
 * The rows of a query with one column of JSON, one line each. They stay bytes from the socket to the consumer: as
 * strings they would take several times the memory, and most of the processor time.
 */
export async function* copyOut(client: pg.Client, query: string): AsyncGenerator<Portion> {
  const socket = streamOf(client)
  const portions = new Readable({
    objectMode: true,
    highWaterMark: waitingMax,
    read: () => void socket?.resume(),
    // The last portion may have paused the socket, and after an error the end of the connection would never be seen.
    destroy: (error, done) => {
      socket?.resume()
      done(error)
    },
  })
  // Buffers for reuse: as garbage they would double the memory of the process before they are collected.
  const free: Buffer<ArrayBuffer>[] = []
  let text = Buffer.allocUnsafe(portionBytes)
  let used = 0
  let rows = 0
  const flush = (): void => {
    if (rows === 0) return
    const hasRoom = portions.push({ buffer: text, used, rows } satisfies Filled)
    text = free.pop() ?? Buffer.allocUnsafe(portionBytes)
    used = 0
    rows = 0
    if (!hasRoom && !portions.destroyed) socket?.pause()
  }
  client.query({
    // JSON has neither of these characters, so CSV changes nothing in it.
    submit: (connection) =>
      void connection.query(
        `copy (${query}) to stdout (format csv, quote e'\\x01', delimiter e'\\x02', encoding 'UTF8')`,
      ),
    // Copied, because the buffer that the chunk is part of is used again.
    handleCopyData: ({ chunk }: { chunk: Buffer }): void => {
      if (used + chunk.length > portionBytes) flush()
      if (chunk.length > text.length) text = Buffer.allocUnsafe(chunk.length)
      used += chunk.copy(text, used)
      rows += 1
    },
    handleCommandComplete: flush,
    handleReadyForQuery: () => void portions.push(null),
    handleError: (error: Error) => void portions.destroy(error),
  } as pg.Submittable)
  for await (const { buffer, used, rows } of portions as AsyncIterable<Filled>) {
    yield { text: buffer.subarray(0, used), rows }
    if (buffer.length === portionBytes) free.push(buffer)
  }
}

import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { smallBody } from '../http/exchange.ts'

export const messageMax = 1_048_576
/**
 * Max bytes, frame heads and pongs included, that may arrive before a message is complete, plus an allowance per
 * millisecond.
 */
const unfinishedMax = 2 * messageMax
const idlePerMs = 0.25
/** Bytes of a client's ping or pong besides its data: the head and the mask. */
const controlHead = 6

/**
 * The large messages that are still arriving, on all sockets, oldest first. Together they hold no more than `max` bytes:
 * the socket of the oldest is cut first, as an honest client finishes its message soon.
 */
export class Unfinished {
  readonly #max: number
  readonly #held = new Map<WebSocket, number>()
  #bytes = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Also cuts a client that goes on without completing a message: ws keeps all bytes that were read with each fragment. */
  watch(ws: WebSocket, socket: Duplex): void {
    let [bytes, held, since] = [0, 0, performance.now()]
    ws.on('message', () => {
      bytes = 0
      held = 0
      since = performance.now()
      this.#hold(ws, 0)
    })
    for (const sign of ['ping', 'pong'] as const)
      ws.on(sign, ({ length }: Buffer) => {
        held = Math.max(0, held - length - controlHead)
      })
    // Runs before ws reads the chunk, so that the bytes that complete a message are not counted for the next one.
    socket.prependListener('data', ({ length }: Buffer) => {
      bytes += length
      held += length
      if (bytes > unfinishedMax && bytes > unfinishedMax + (performance.now() - since) * idlePerMs)
        ws.terminate()
      else if (held > smallBody) this.#hold(ws, held)
    })
    ws.once('close', () => this.#hold(ws, 0))
  }

  #hold(ws: WebSocket, bytes: number): void {
    this.#bytes += bytes - (this.#held.get(ws) ?? 0)
    if (bytes === 0) return void this.#held.delete(ws)
    this.#held.set(ws, bytes)
    if (this.#bytes <= this.#max) return
    const [oldest] = this.#held.keys()
    if (oldest) {
      this.#hold(oldest, 0)
      oldest.terminate()
    }
  }
}

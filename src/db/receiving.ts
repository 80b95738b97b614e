import type { Socket } from 'node:net'
import type pg from 'pg'
import { streamOf } from './servers/dial.ts'

/** Max bytes of large results that arrive at the same time; beyond it they arrive one after the other. */
const arrivingMax = 4_194_304
/** A result that is shorter never waits. */
const shortMax = 262_144

type Client = Pick<pg.Client, 'query'>
type Result = { socket: Socket; bytes: number; isPaused: boolean }

/**
 * Results that are arriving from the database. Parsed rows take several times the bytes of the result, so large results
 * take turns: the first to become large goes on, and the others stay unread on their connections (backpressure).
 */
export class Receiving {
  readonly #results = new WeakMap<Client, Result>()
  /** Oldest first. */
  readonly #large = new Set<Result>()
  #bytes = 0

  /** To be called for each connection, once it is open. */
  watch(client: Client): void {
    const socket = streamOf(client)
    if (!socket) return
    const result: Result = { socket, bytes: 0, isPaused: false }
    this.#results.set(client, result)
    socket.on('data', (chunk: Buffer) => this.#take(result, chunk.length))
    socket.once('close', () => this.#end(result))
  }

  /** The statement that `client` ran has been answered, or never will be. */
  done(client: Client): void {
    const result = this.#results.get(client)
    if (result) this.#end(result)
  }

  #take(result: Result, length: number): void {
    result.bytes += length
    if (result.bytes <= shortMax) return
    this.#bytes += this.#large.has(result) ? length : result.bytes
    this.#large.add(result)
    const [oldest] = this.#large
    if (this.#bytes <= arrivingMax || result === oldest) return
    result.isPaused = true
    result.socket.pause()
  }

  #end(result: Result): void {
    const { bytes } = result
    result.bytes = 0
    // Its last bytes may have come just when it was paused.
    resume(result)
    if (!this.#large.delete(result)) return
    this.#bytes -= bytes
    for (const next of this.#large) {
      resume(next)
      // The oldest always resumes; others only while there is room.
      if (this.#bytes > arrivingMax) return
    }
  }
}

function resume(result: Result): void {
  if (result.isPaused) result.socket.resume()
  result.isPaused = false
}

import type pg from 'pg'
import { since } from '../observe/observer.ts'

const answerMs = 5_000

/** Asks whether a connection hears what is sent to its channel: poolers forget LISTEN, and proxies may drop NOTIFY. */
export class Echo {
  readonly #node: string
  readonly #channel: string
  #asked = 0
  readonly #awaited = new Map<string, (isHeard: boolean) => void>()

  constructor(node: string, channel: string) {
    this.#node = node
    this.#channel = channel
  }

  /** Call it with every payload received. */
  hear(payload: string): void {
    this.#awaited.get(payload)?.(true)
  }

  /** Resolves to the seconds until the connection heard itself, or undefined if it did not; rejects if it is lost. */
  async of(client: pg.Client): Promise<number | undefined> {
    const payload = `${this.#node} ping ${++this.#asked}`
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#awaited.set(payload, resolve)
    const began = performance.now()
    const timer = setTimeout(resolve, answerMs, false).unref()
    try {
      // A full queue is emptied only by a signal, which PostgreSQL then refuses, or by whoever asks for its usage.
      await client.query('select pg_notification_queue_usage(), pg_notify($1, $2)', [this.#channel, payload])
      return (await promise) ? since(began) : undefined
    } finally {
      clearTimeout(timer)
      this.#awaited.delete(payload)
    }
  }
}

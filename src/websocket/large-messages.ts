import type { WebSocket } from 'ws'
import { type AnswerLimits, type Holder, smallAnswer, unsent } from '../http/unsent.ts'

/**
 * Messages of one socket that its client has not read: large ones, and all behind a backlog. They count towards the
 * unread answers of HTTP. The socket's own limits apply first; it is cut here only to make room.
 */
export class LargeMessages implements Holder {
  unsent = 0
  readonly isPatient = true
  readonly limits: AnswerLimits
  readonly #ws: WebSocket
  #since = 0
  /** Large messages among them. */
  #large = 0

  constructor(ws: WebSocket, limits: AnswerLimits) {
    this.#ws = ws
    this.limits = limits
  }

  /** Longer while a large message is written, since only its end shows that the client reads. */
  get graceMs(): number {
    return this.#large > 0 ? 5_000 : 500
  }

  send(text: string | Uint8Array): void {
    const bytes = text.length
    const large = bytes > smallAnswer ? 1 : 0
    if (this.unsent === 0) {
      this.#since = performance.now()
      unsent.watch(this)
    }
    this.#count(bytes)
    this.#large += large
    this.#ws.send(text, { binary: false }, () => {
      this.#count(-bytes)
      this.#large -= large
      this.#since = performance.now()
      if (this.unsent === 0) unsent.unwatch(this)
    })
  }

  stuckMs(now: number): number {
    return now - this.#since
  }

  cut(): void {
    this.#ws.terminate()
  }

  #count(bytes: number): void {
    this.unsent += bytes
    unsent.bytes += bytes
  }
}

import type { WebSocket } from 'ws'
import { type AnswerLimits, type Holder, unsent } from '../http/unsent.ts'

/**
 * Large messages of one socket that its client has not read. They count towards the unread answers of HTTP. The
 * socket's own limits apply first; it is cut here only to make room.
 */
export class LargeMessages implements Holder {
  unsent = 0
  readonly isPatient = true
  readonly limits: AnswerLimits
  readonly #ws: WebSocket
  #since = 0

  constructor(ws: WebSocket, limits: AnswerLimits) {
    this.#ws = ws
    this.limits = limits
  }

  send(text: string | Uint8Array): void {
    const bytes = text.length
    if (this.unsent === 0) {
      this.#since = performance.now()
      unsent.watch(this)
    }
    this.#count(bytes)
    this.#ws.send(text, { binary: false }, () => {
      this.#count(-bytes)
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

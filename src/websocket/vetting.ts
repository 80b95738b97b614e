import type { Notification } from '../notifications.ts'

/** Notifications that wait at most; more mean that the database is slow to answer. */
const waitingMax = 1000

/**
 * Passes notifications on at once; in doubt, only after the database has confirmed that the credential may receive
 * them.
 */
export class Vetting {
  /** If this grew since the database was asked, the answer may be older than the latest doubt. */
  #doubts = 0
  #waiting: Notification[] = []
  #isAsking = false
  readonly #mayHear: () => Promise<boolean>
  readonly #send: (notification: Notification) => void
  /** Called without an error if too many wait. */
  readonly #fail: (error?: unknown) => void

  constructor(
    mayHear: () => Promise<boolean>,
    send: (notification: Notification) => void,
    fail: (error?: unknown) => void,
  ) {
    this.#mayHear = mayHear
    this.#send = send
    this.#fail = fail
  }

  /** From now on the database is asked before notifications are sent, until it confirms the credential. */
  doubt(): void {
    this.#doubts++
  }

  pass(notification: Notification): void {
    if (this.#doubts === 0 && !this.#isAsking) return void this.#send(notification)
    if (this.#waiting.length >= waitingMax) return void this.#fail()
    this.#waiting.push(notification)
    if (!this.#isAsking) void this.#ask()
  }

  async #ask(): Promise<void> {
    this.#isAsking = true
    try {
      while (this.#waiting.length > 0) {
        const [asked, doubts] = [this.#waiting.splice(0), this.#doubts]
        if (!(await this.#mayHear())) continue
        for (const notification of asked) this.#send(notification)
        if (this.#doubts === doubts) this.#doubts = 0
      }
    } catch (error) {
      this.#fail(error)
    }
    this.#isAsking = false
  }
}

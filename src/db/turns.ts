import { refusal } from '../errors.ts'

/**
 * At most so many at once, the others in the order in which they came; who waits longer than `waitMs` is refused
 * like one for whom there is no connection.
 */
export class Turns {
  #free: number
  readonly #waitMs: number
  readonly #waiting = new Set<() => void>()

  constructor(max: number, waitMs: number) {
    this.#free = max
    this.#waitMs = waitMs
  }

  /** Undefined: at once. Each turn ends with `leave`. */
  enter(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1
      return undefined
    }
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(admit)
        reject(refusal('service_unavailable'))
      }, this.#waitMs)
      this.#waiting.add(admit)
    })
  }

  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}

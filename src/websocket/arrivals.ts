import { smallBody } from '../http/exchange.ts'
import { inTurn } from '../limits/in-turn.ts'

type Text = string | null

/** What an empty message that waits counts for: endless ones must not wait uncounted. */
const leastWeight = 64

/**
 * The messages of one socket, looked at in the order in which they came, each large one in a turn of its own. Small ones wait
 * behind a large one only: a `cancel` must not overtake its call, nor a call an earlier one of the same id.
 */
export class Arrivals {
  #waiting: Text[] = []
  readonly #from: string
  readonly #weigh: (size: number) => void
  readonly #look: (text: Text) => void

  /** `weigh` is told the size of what begins to wait, and, negative, of what no longer does. */
  constructor(from: string, weigh: (size: number) => void, look: (text: Text) => void) {
    this.#from = from
    this.#weigh = weigh
    this.#look = look
  }

  /** Takes one message; null is a binary one. */
  add(text: Text): void {
    if (this.#waiting.length === 0 && !isLarge(text)) return void this.#look(text)
    this.#weigh(weightOf(text))
    if (this.#waiting.push(text) === 1) this.#wait()
  }

  /** The first that waits is large; the small ones right behind it share its turn. */
  #wait(): void {
    inTurn(this.#from, () => {
      const next = this.#waiting.findIndex((text, index) => index > 0 && isLarge(text))
      const looked = this.#waiting.splice(0, next < 0 ? this.#waiting.length : next)
      for (const text of looked) {
        this.#weigh(-weightOf(text))
        this.#look(text)
      }
      if (this.#waiting.length > 0) this.#wait()
    })
  }
}

const isLarge = (text: Text): boolean => text !== null && text.length > smallBody

const weightOf = (text: Text): number => Math.max(text?.length ?? 0, leastWeight)

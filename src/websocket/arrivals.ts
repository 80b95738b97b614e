import { smallBody } from '../http/exchange.ts'
import { inTurn } from '../limits/in-turn.ts'

type Text = string | null

/**
 * The min weight of a waiting message. A socket with 64 small ones waiting is not read: a thousand clients may send them
 * faster than they are handled, and a text in memory is larger than its bytes in the connection.
 */
const weightMin = 16_384
/** Small messages handled in one turn: the reads of one turn may bring a hundred thousand. */
const turnMax = 64

/**
 * The messages of one socket, handled in the order of their arrival, each large one in an event loop turn of its own.
 * Small messages wait only behind a large one, or behind very many: a `cancel` must not overtake its call, nor a call an
 * earlier call with the same id.
 */
export class Arrivals {
  #waiting: Text[] = []
  readonly #from: string
  readonly #weigh: (size: number) => void
  readonly #handle: (text: Text) => void
  /** How many messages this turn has handled at once. */
  #handled = 0

  /** `weigh` gets the size of a message that begins to wait, and the negative size when it no longer waits. */
  constructor(from: string, weigh: (size: number) => void, handle: (text: Text) => void) {
    this.#from = from
    this.#weigh = weigh
    this.#handle = handle
  }

  /** Takes one message; null is a binary one. */
  add(text: Text): void {
    if (this.#waiting.length === 0 && !isLarge(text) && this.#fitsTurn()) return void this.#handle(text)
    this.#weigh(weightOf(text))
    if (this.#waiting.push(text) === 1) this.#wait()
  }

  #fitsTurn(): boolean {
    if (this.#handled === 0)
      setImmediate(() => {
        this.#handled = 0
      })
    this.#handled += 1
    return this.#handled <= turnMax
  }

  /** The first waiting message may be large; small ones right behind it share its turn. */
  #wait(): void {
    inTurn(this.#from, () => {
      const next = this.#waiting.findIndex((text, index) => index > 0 && (isLarge(text) || index === turnMax))
      const turn = this.#waiting.splice(0, next < 0 ? this.#waiting.length : next)
      for (const text of turn) {
        this.#weigh(-weightOf(text))
        this.#handle(text)
      }
      if (this.#waiting.length > 0) this.#wait()
    })
  }
}

const isLarge = (text: Text): boolean => text !== null && text.length > smallBody

const weightOf = (text: Text): number => Math.max(text?.length ?? 0, weightMin)

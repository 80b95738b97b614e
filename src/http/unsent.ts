/**
 * Accounts for the answers that are ready but that clients have not taken yet. Without a max, clients that do not read
 * would decide how much memory the answers use.
 */

export type AnswerLimits = {
  /** Max bytes of all such answers; beyond it large answers are refused and stalled clients are cut. */
  readonly unsent_max: number
  /** How long a client may take nothing of an answer. */
  readonly answer_stall_ms: number
}

/** A connection that answers are sent on. */
export type Holder = {
  readonly limits: AnswerLimits
  /** Bytes of its answers that the client has not taken. */
  readonly unsent: number
  /** How long its client has taken nothing although answers wait. */
  stuckMs(now: number): number
  /** True: it has its own stall timeout and is cut here only to make room. */
  readonly isPatient: boolean
  /** How long it may take nothing before it is cut to make room. */
  readonly graceMs: number
  /** Ends the connection at once. */
  cut(): void
}

/** Answers up to this size are never refused. */
export const smallAnswer = 65_536

const sweepMs = 250
/**
 * Max connections cut in one sweep, because closing one costs time for each of its requests. Sockets are exempt while
 * too much is unsent.
 */
const cutsMax = 4

class Unsent {
  bytes = 0
  readonly #holders = new Set<Holder>()
  #sweeps: NodeJS.Timeout | undefined

  /** Whether an answer of this length would exceed the max. */
  isOver(length: number, { unsent_max }: Pick<AnswerLimits, 'unsent_max'>): boolean {
    return length > smallAnswer && this.bytes + length > unsent_max
  }

  watch(holder: Holder): void {
    this.#holders.add(holder)
    this.#sweeps ??= setInterval(() => this.#sweep(performance.now()), sweepMs).unref()
  }

  unwatch(holder: Holder): void {
    this.#holders.delete(holder)
    if (this.#holders.size > 0) return
    clearInterval(this.#sweeps)
    this.#sweeps = undefined
  }

  #sweep(now: number): void {
    const stuck: Holder[] = []
    let cuts = 0
    for (const holder of this.#holders) {
      const ms = holder.stuckMs(now)
      if (!holder.isPatient && ms >= holder.limits.answer_stall_ms) {
        if (cuts++ < cutsMax) holder.cut()
      } else if (ms >= holder.graceMs) stuck.push(holder)
    }
    let left = this.bytes
    for (const holder of stuck.sort((a, b) => b.unsent - a.unsent)) {
      const { unsent_max } = holder.limits
      // Free a quarter, so that the next answers need not wait for another sweep.
      const isEnough = left <= unsent_max || !holder.isPatient
      if (left <= unsent_max * 0.75 || (cuts++ >= cutsMax && isEnough)) return
      left -= holder.unsent
      holder.cut()
    }
  }
}

export const unsent = new Unsent()

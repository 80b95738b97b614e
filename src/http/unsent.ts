/**
 * Answers of this process that are made and that no client has taken yet. A client that does not read would
 * otherwise decide how much memory they fill.
 */

export type AnswerLimits = {
  /** Bytes of all such answers, past which large ones are refused and clients that stand still are cut. */
  readonly unsent_max: number
  /** How long a client may take nothing of an answer. */
  readonly answer_stall_ms: number
}

/** A connection that answers go to. */
export type Holder = {
  readonly limits: AnswerLimits
  /** Bytes of its answers in the account. */
  readonly unsent: number
  /** For how long its client has taken nothing of what waits. */
  stuckMs(now: number): number
  /** Its own rules say how long it may stand still; it gives way only to make room. */
  readonly isPatient: boolean
  /** Ends the connection at once. */
  cut(): void
}

/** Answers up to this size are made whatever waits. */
export const smallAnswer = 65_536

const sweepMs = 250
/** Cut in one sweep: the end of a connection costs time for each of its requests. */
const cutsMax = 4
/** Whoever has stood still for so long may be cut to make room; longer where a message is written in one go. */
const graceMs = 1_000
const patientGraceMs = 5_000

class Unsent {
  bytes = 0
  readonly #holders = new Set<Holder>()
  #sweeps: NodeJS.Timeout | undefined

  /** True: an answer of this length would be more than may wait. */
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
      } else if (ms >= (holder.isPatient ? patientGraceMs : graceMs)) stuck.push(holder)
    }
    let left = this.bytes
    for (const holder of stuck.sort((a, b) => b.unsent - a.unsent)) {
      // Some room, so that not every answer has to wait for a sweep.
      if (left <= holder.limits.unsent_max * 0.75 || cuts++ >= cutsMax) return
      left -= holder.unsent
      holder.cut()
    }
  }
}

export const unsent = new Unsent()

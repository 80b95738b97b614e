/** Why a server that answers is not used, from the least to the most informative. */
const reasons = ['read_only', 'settings', 'cluster', 'timeline'] as const

/** A server that answers, but is not the one to use. */
export class Unfit extends Error {
  readonly why: (typeof reasons)[number]
  constructor(why: Unfit['why'], message: string) {
    super(message)
    this.why = why
  }
  get weight(): number {
    return 1 + reasons.indexOf(this.why)
  }
}

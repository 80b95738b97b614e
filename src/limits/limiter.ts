/** Rate limiters: one per limiter name, with a bucket of charges per key. Stores: rate-limit-memory.ts, -postgres.ts. */

/** `retryAfter`: whole seconds, at least 1, after which one attempt would be admitted. */
export type Refused = {
  ok: false
  retryAfter: number
  /** Set where only attempts under way stand in the way: their outcomes decide. */
  isPending?: true
}

/** An admitted attempt whose slot is settled when it ends, by the first call of either; later calls do nothing. */
export type Held = {
  ok: true
  /** Makes the slot a charge, as of now. */
  charge(): Promise<void>
  /** Gives the slot back. */
  drop(): Promise<void>
}

export interface Limiter {
  /** Tests and takes a slot in one atomic step; the caller must settle it, whatever happens to the attempt. */
  hold(key: string): Promise<Held | Refused>
  /** Tests and charges in one atomic step. */
  charge(key: string): Promise<{ ok: true } | Refused>
  /** Adds charges for what was done, however full the bucket is. */
  spend(key: string, count: number): Promise<void>
  /** Forgets the charges of these keys; slots held by attempts still under way stay. */
  clear(...keys: string[]): Promise<void>
}

/** Up to so many charges a limiter is exact; above, charges of one sub-window count as one moment. */
export const exactMax = 100

/** The milliseconds of a sub-window, whose charges leave together; 0 where the limiter is exact. */
export const grainOf = (max: number, windowMs: number): number =>
  max <= exactMax ? 0 : Math.floor(windowMs / 30)

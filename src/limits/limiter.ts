/** Rate limiters: one per name, with a bucket of charges per key. Stores: memory-limiter.ts, postgres-limiter.ts. */

/** `retryAfter`: whole seconds, at least 1, until an attempt would be admitted. */
export type Refused = {
  ok: false
  retryAfter: number
  /** Set if only slots of running attempts fill the bucket: their outcomes decide. */
  isPending?: true
}

/** An admitted attempt. The first call of either function settles its slot; later calls do nothing. */
export type Held = {
  ok: true
  /** Turns the slot into a charge, as of now. */
  charge(): Promise<void>
  /** Frees the slot. */
  drop(): Promise<void>
}

export interface Limiter {
  /** Tests and takes a slot atomically; the caller must settle it, whatever happens to the attempt. */
  hold(key: string): Promise<Held | Refused>
  /** Tests and charges atomically. */
  charge(key: string): Promise<{ ok: true } | Refused>
  /** Adds charges for work already done, even if the bucket is full. */
  spend(key: string, count: number): Promise<void>
  /** Forgets the charges of these keys; slots of running attempts stay. */
  clear(...keys: string[]): Promise<void>
  /** The charges of a key that count now, and the slots of its running attempts. */
  count(key: string): Promise<number>
}

/** Up to this max a limiter is exact; above it, charges of one sub-window count as made at the same moment. */
const exactMax = 100

/** The length in milliseconds of a sub-window, whose charges expire together; 0 for an exact limiter. */
export const grainOf = (max: number, windowMs: number): number =>
  max <= exactMax ? 0 : Math.floor(windowMs / 30)

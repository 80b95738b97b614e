/** Rate limiters (contract 1, section 9.1): one per limiter name, with a bucket of charges per key. */

/** `retryAfter`: whole seconds, at least 1, after which one attempt would be admitted. */
export type Refused = { ok: false; retryAfter: number }

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
  /** Forgets the charges of a key; slots held by attempts still under way stay. */
  clear(key: string): Promise<void>
}

export type MemoryLimiterOptions = {
  max: number
  windowMs: number
  /** Buckets kept; beyond that the one nearest to empty goes, a blocked one last. */
  keysMax?: number
  /** Milliseconds of a clock that never goes back. */
  now?: () => number
}

/** Charges of one moment, or of one sub-window; an entry of the bucket and of the list of all, oldest first. */
interface Charges extends Links<Charges> {
  bucket: Bucket
  at: number
  count: number
}

interface Bucket extends Links<Bucket> {
  key: string
  held: number
  charged: number
  charges: Charges[]
  level: number
}

/** Up to so many charges a limiter is exact; above, charges of one sub-window count as one moment. */
export const exactMax = 100
const levelsMax = 100
/** Charges that one call lets go beyond those of its own key, so that none pays for a whole idle hour. */
const expiryBatch = 1000

/** The store `memory`: per process, exact up to 100 charges per window, in sub-windows of window/30 above. */
export function createMemoryLimiter(options: MemoryLimiterOptions): Limiter {
  const { max, windowMs, keysMax = 100_000, now = () => performance.now() } = options
  const grain = max <= exactMax ? 0 : Math.floor(windowMs / 30)
  const buckets = new Map<string, Bucket>()
  const allCharges = createList<Charges>()
  /** Buckets by fullness; the last level holds the blocked ones. */
  const blocked = Math.min(max, levelsMax)
  const levels = Array.from({ length: blocked + 1 }, () => createList<Bucket>())
  const clock = (): number => Math.floor(now())
  const endOf = ({ at }: Charges): number => at + windowMs + grain

  const bucketOf = (key: string): Bucket => {
    const known = buckets.get(key)
    if (known !== undefined) return known
    if (buckets.size >= keysMax) evict()
    const bucket: Bucket = { ...unlinked(), key, held: 0, charged: 0, charges: [], level: 0 }
    buckets.set(key, bucket)
    levels[0]?.append(bucket)
    return bucket
  }
  const forget = (bucket: Bucket): void => {
    for (const charges of bucket.charges) unlink(charges)
    unlink(bucket)
    buckets.delete(bucket.key)
  }
  const evict = (): void => {
    const emptiest = levels.find((level) => level.first() !== undefined)?.first()
    if (emptiest !== undefined) forget(emptiest)
  }
  /** Puts a bucket where its fullness belongs; an empty one is not kept. */
  const settle = (bucket: Bucket): void => {
    const used = bucket.held + bucket.charged
    if (used === 0) {
      forget(bucket)
      return
    }
    const level = Math.min(blocked, Math.floor((used * blocked) / max))
    if (level === bucket.level) return
    bucket.level = level
    unlink(bucket)
    levels[level]?.append(bucket)
  }
  const release = (bucket: Bucket): void => {
    const oldest = bucket.charges.shift()
    if (oldest === undefined) return
    unlink(oldest)
    bucket.charged -= oldest.count
    settle(bucket)
  }
  const expire = (key: string, time: number): void => {
    for (let left = expiryBatch; left > 0; left--) {
      const oldest = allCharges.first()
      if (oldest === undefined || endOf(oldest) > time) break
      release(oldest.bucket)
    }
    const bucket = buckets.get(key)
    while (bucket?.charges[0] !== undefined && endOf(bucket.charges[0]) <= time) release(bucket)
  }
  /** The refusal that the key would get now, if any. */
  const refused = (key: string, time: number): Refused | undefined => {
    const bucket = buckets.get(key)
    if (bucket === undefined || bucket.charged + bucket.held < max) return undefined
    if (bucket.charged < max) return { ok: false, retryAfter: 1 }
    let left = bucket.charged
    const lastInTheWay = bucket.charges.find((charges) => {
      left -= charges.count
      return left + bucket.held < max
    })
    const wait = lastInTheWay === undefined ? 0 : endOf(lastInTheWay) - time
    return { ok: false, retryAfter: Math.max(1, Math.ceil(wait / 1000)) }
  }
  const addCharges = (key: string, time: number, count = 1): void => {
    const bucket = bucketOf(key)
    const newest = bucket.charges.at(-1)
    if (newest !== undefined && time - newest.at <= grain) newest.count += count
    else {
      const charges: Charges = { ...unlinked(), bucket, at: time, count }
      bucket.charges.push(charges)
      allCharges.append(charges)
    }
    bucket.charged += count
    settle(bucket)
  }
  const test = (key: string): { time: number; refusal: Refused | undefined } => {
    const time = clock()
    expire(key, time)
    return { time, refusal: refused(key, time) }
  }

  return {
    async hold(key) {
      const { refusal } = test(key)
      if (refusal !== undefined) return refusal
      const bucket = bucketOf(key)
      bucket.held++
      settle(bucket)
      let open = true
      const end = (charge: boolean): void => {
        if (!open) return
        open = false
        const time = clock()
        expire(key, time)
        bucket.held--
        // An evicted bucket took its held slots along; the charge then goes to the key's new bucket.
        if (charge) addCharges(key, time)
        else if (buckets.get(key) === bucket) settle(bucket)
      }
      return { ok: true, charge: async () => end(true), drop: async () => end(false) }
    },
    async charge(key) {
      const { time, refusal } = test(key)
      if (refusal !== undefined) return refusal
      addCharges(key, time)
      return { ok: true }
    },
    async spend(key, count) {
      const time = clock()
      expire(key, time)
      addCharges(key, time, count)
    },
    async clear(key) {
      const bucket = buckets.get(key)
      while (bucket !== undefined && bucket.charges.length > 0) release(bucket)
    },
  }
}

/** A limiter switched off: admits everything. */
export const offLimiter: Limiter = {
  hold: async () => ({ ok: true, charge: async () => {}, drop: async () => {} }),
  charge: async () => ({ ok: true }),
  spend: async () => {},
  clear: async () => {},
}

/** A node of a ring; linked lists because removal from the middle must cost the same at 100 000 keys. */
type Links<T> = { before: Links<T>; after: Links<T> }

function unlinked<T>(): Links<T> {
  const links = {} as Links<T>
  return Object.assign(links, { before: links, after: links })
}

function unlink<T>(node: Links<T>): void {
  node.before.after = node.after
  node.after.before = node.before
  node.before = node
  node.after = node
}

function createList<T extends Links<T>>() {
  const ends = unlinked<T>()
  return {
    first: (): T | undefined => (ends.after === ends ? undefined : (ends.after as T)),
    append(node: T): void {
      node.before = ends.before
      node.after = ends
      ends.before.after = node
      ends.before = node
    },
  }
}

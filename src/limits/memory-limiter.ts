import { grainOf, type Held, type Limiter, type Refused } from './limiter.ts'

type MemoryLimiterOptions = {
  max: number
  windowMs: number
  /** Max buckets; beyond it the one charged longest ago is evicted. */
  keysMax?: number
  /** A monotonic clock in milliseconds. */
  now?: () => number
}

/** A node of the ring. Each entry of `charges` is a moment or sub-window, oldest first. */
interface Bucket extends Links<Bucket> {
  key: string
  held: number
  charged: number
  charges: { at: number; count: number }[]
}

type Buckets = {
  max: number
  keysMax: number
  grain: number
  /** How long charges count, including the rest of their sub-window. */
  span: number
  byKey: Map<string, Bucket>
  /** All buckets; the one charged longest ago comes first. */
  ring: Links<Bucket>
}

/** Max idle buckets that one call removes, so that no single call has to clean up very many. */
const expiryBatch = 1000

/** The store `memory`: per process, exact up to 100 charges per window, above that in sub-windows of window/30. */
export function createMemoryLimiter(options: MemoryLimiterOptions): Limiter {
  const { max, windowMs, keysMax = 100_000, now = () => performance.now() } = options
  const grain = grainOf(max, windowMs)
  const span = windowMs + grain
  const buckets: Buckets = { max, keysMax, grain, span, byKey: new Map(), ring: unlinked<Bucket>() }
  const clock = (): number => Math.floor(now())
  return {
    async hold(key) {
      return refusalOf(buckets, key, clock()) ?? slotOf(buckets, key, clock)
    },
    async charge(key) {
      const time = clock()
      const refused = refusalOf(buckets, key, time)
      if (refused === undefined) addCharges(buckets, key, time, 1)
      return refused ?? { ok: true }
    },
    async spend(key, count) {
      addCharges(buckets, key, clock(), count)
    },
    async clear(...keys) {
      for (const key of keys) empty(buckets, buckets.byKey.get(key))
    },
    async count(key) {
      const bucket = buckets.byKey.get(key)
      if (bucket === undefined) return 0
      release(buckets, bucket, clock())
      return bucket.charged + bucket.held
    },
  }
}

/** The refusal that the key would get now, if any. */
function refusalOf(buckets: Buckets, key: string, time: number): Refused | undefined {
  const { max, span } = buckets
  forgetIdle(buckets, time)
  const bucket = buckets.byKey.get(key)
  if (bucket === undefined) return undefined
  release(buckets, bucket, time)
  if (bucket.charged + bucket.held < max) return undefined
  if (bucket.charged < max) return { ok: false, retryAfter: 1, isPending: true }
  let left = bucket.charged
  const lastInTheWay = bucket.charges.find(({ count }) => {
    left -= count
    return left + bucket.held < max
  })
  const wait = lastInTheWay === undefined ? 0 : lastInTheWay.at + span - time
  return { ok: false, retryAfter: Math.max(1, Math.ceil(wait / 1000)) }
}

function slotOf(buckets: Buckets, key: string, clock: () => number): Held {
  const bucket = bucketOf(buckets, key)
  bucket.held++
  let isOpen = true
  const end = async (isCharged: boolean): Promise<void> => {
    if (!isOpen) return
    isOpen = false
    bucket.held--
    // Held slots are lost with an evicted bucket; the charge then goes to the key's new bucket.
    if (isCharged) addCharges(buckets, key, clock(), 1)
    else forgetEmpty(buckets, bucket)
  }
  return { ok: true, charge: () => end(true), drop: () => end(false) }
}

function addCharges(buckets: Buckets, key: string, time: number, count: number): void {
  const bucket = bucketOf(buckets, key)
  const newest = bucket.charges.at(-1)
  if (newest !== undefined && time - newest.at <= buckets.grain) newest.count += count
  else bucket.charges.push({ at: time, count })
  bucket.charged += count
  unlink(bucket)
  append(buckets.ring, bucket)
}

/** The bucket of a key, made if there is none; evicts the one charged longest ago if there are too many. */
function bucketOf({ byKey, ring, keysMax }: Buckets, key: string): Bucket {
  const known = byKey.get(key)
  if (known !== undefined) return known
  if (byKey.size >= keysMax) forget(byKey, ring.after as Bucket)
  const bucket: Bucket = { ...unlinked<Bucket>(), key, held: 0, charged: 0, charges: [] }
  byKey.set(key, bucket)
  append(ring, bucket)
  return bucket
}

/** Removes expired charges. */
function release(buckets: Buckets, bucket: Bucket, time: number): void {
  const { charges } = bucket
  for (let [oldest] = charges; oldest !== undefined && oldest.at + buckets.span <= time; [oldest] = charges) {
    charges.shift()
    bucket.charged -= oldest.count
  }
  forgetEmpty(buckets, bucket)
}

function forgetIdle(buckets: Buckets, time: number): void {
  for (let left = expiryBatch; left > 0; left--) {
    const oldest = buckets.ring.after as Bucket
    const newest = oldest.charges?.at(-1)
    if (newest === undefined || newest.at + buckets.span > time) return
    release(buckets, oldest, time)
    if (oldest.held > 0) return
  }
}

function empty(buckets: Buckets, bucket: Bucket | undefined): void {
  if (bucket === undefined) return
  bucket.charges = []
  bucket.charged = 0
  forgetEmpty(buckets, bucket)
}

function forgetEmpty({ byKey }: Buckets, bucket: Bucket): void {
  if (bucket.held + bucket.charged === 0 && byKey.get(bucket.key) === bucket) forget(byKey, bucket)
}

function forget(byKey: Map<string, Bucket>, bucket: Bucket): void {
  unlink(bucket)
  byKey.delete(bucket.key)
}

/** A node of a ring; a linked list, so that removal from the middle is cheap with 100 000 keys. */
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

function append<T>(ends: Links<T>, node: Links<T>): void {
  node.before = ends.before
  node.after = ends
  ends.before.after = node
  ends.before = node
}

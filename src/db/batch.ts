/** The most keys that one statement looks up. */
const batchMax = 128
/** Concurrent statements. Reads that arrive meanwhile form the next batch, so batches grow with the load. */
const underWayMax = 2

type Waiting<V> = { resolve(value: V | undefined): void; reject(error: unknown): void }

/**
 * Combines reads requested in one turn of the event loop, or while other batches run, into one call of
 * `load`, which starts after all of them were requested. Nothing is cached, so a revocation applies to the
 * next request.
 */
export function batched<V>(
  load: (keys: string[]) => Promise<Map<string, V>>,
): (key: string) => Promise<V | undefined> {
  let waiting = new Map<string, Waiting<V>[]>()
  let underWay = 0
  let isPlanned = false

  const flush = async (): Promise<void> => {
    if (waiting.size === 0) return
    const batch = waiting
    waiting = new Map()
    underWay += 1
    try {
      const found = await load([...batch.keys()])
      for (const [key, readers] of batch) for (const reader of readers) reader.resolve(found.get(key))
    } catch (error) {
      for (const readers of batch.values()) for (const reader of readers) reader.reject(error)
    }
    underWay -= 1
    plan()
  }

  const plan = (): void => {
    if (isPlanned || waiting.size === 0 || underWay >= underWayMax) return
    isPlanned = true
    setImmediate(() => {
      isPlanned = false
      void flush()
    })
  }

  return (key) =>
    new Promise((resolve, reject) => {
      const readers = waiting.get(key)
      if (readers) return readers.push({ resolve, reject })
      waiting.set(key, [{ resolve, reject }])
      if (waiting.size === batchMax) void flush()
      else plan()
    })
}

/** One statement answers at most this many reads. */
const batchMax = 128
/** Statements under way at once. What is asked meanwhile goes together, so that batches grow with the load. */
const underWayMax = 2

type Waiting<V> = { resolve(value: V | undefined): void; reject(error: unknown): void }

/**
 * Reads that are asked for in one turn of the event loop, or while others are under way, go to `load` as
 * one call, which begins after each of them was asked. Nothing is kept, so a revocation binds the very
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

import { busy } from '../errors.ts'

interface FairQueue {
  /** Runs a job when its turn comes; rejects with `busy` (503) if the queue has no place for it or it was evicted. */
  run<T>(from: string, job: () => Promise<T>): Promise<T>
  /** True if a job would be accepted now without evicting another. */
  hasRoom(): boolean
  /** Jobs running or waiting. */
  readonly size: number
}

type Waiter = { start: () => void; refuse: (error: Error) => void }

/**
 * Holds up to `capacity` jobs and runs `ahead` of them at once; the others wait, and their sources (`from`) take
 * turns. When the queue is full, a source with fewer waiting jobs evicts the newest job of the source with the
 * most, so that no source can fill the queue for all.
 */
export function createFairQueue(ahead: number, capacity: number): FairQueue {
  /** Waiting jobs by source; the source whose turn is next comes first. */
  const lines = new Map<string, Waiter[]>()
  let underWay = 0
  let waiting = 0

  const hasRoom = (): boolean => underWay + waiting < capacity
  const wait = (from: string): Promise<void> =>
    new Promise((start, refuse) => {
      const line = lines.get(from)
      if (line === undefined) lines.set(from, [{ start, refuse }])
      else line.push({ start, refuse })
      waiting++
    })
  const next = (): Waiter | undefined => {
    const [turn] = lines
    if (turn === undefined) return undefined
    const [from, line] = turn
    const waiter = line.shift()
    lines.delete(from)
    if (line.length > 0) lines.set(from, line)
    waiting--
    return waiter
  }
  const makeRoom = (from: string): boolean => {
    let longest: Waiter[] = []
    for (const line of lines.values()) if (line.length > longest.length) longest = line
    const own = lines.get(from)?.length ?? 0
    if (longest.length <= own + 1) return false
    longest.pop()?.refuse(busy())
    waiting--
    return true
  }

  return {
    hasRoom,
    get size() {
      return underWay + waiting
    },
    async run(from, job) {
      if (!hasRoom() && !makeRoom(from)) throw busy()
      if (underWay < ahead) underWay++
      else await wait(from)
      try {
        return await job()
      } finally {
        // Hands the place directly to the next in turn, so that a newcomer cannot take it.
        const waiter = next()
        if (waiter === undefined) underWay--
        else waiter.start()
      }
    },
  }
}

import { refusal } from '../errors.ts'

export interface FairQueue {
  /** Runs a job when its turn comes; rejects with `busy` (503) when there is no place for it, or no longer. */
  run<T>(from: string, job: () => Promise<T>): Promise<T>
  /** Whether a job given now would be taken without taking another's place. */
  hasRoom(): boolean
  /** How many have been given and are not done. */
  readonly size: number
}

type Waiter = { start: () => void; refuse: (error: Error) => void }

/**
 * Takes `capacity` jobs and has `ahead` of them under way; the others wait, and those who gave them (`from`) take
 * turns. When all places are taken, the one who has most jobs waiting loses the newest of them to whoever has fewer,
 * so that nobody can fill the queue for all.
 */
export function createFairQueue(ahead: number, capacity: number): FairQueue {
  /** Waiting jobs by who gave them; whose turn is next comes first. */
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
        // The place goes straight to the next in turn, so that a newcomer cannot take it first.
        const waiter = next()
        if (waiter === undefined) underWay--
        else waiter.start()
      }
    },
  }
}

const busy = (): Error => refusal('busy', { retry_after: 1 })

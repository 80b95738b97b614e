import { setTimeout as delay } from 'node:timers/promises'

/** Min time between two readings, so that one reading serves many concurrent writers. */
const restMs = 20

type Readings = {
  /** Resolves when a reading that began after the call is done; rejects if it failed. */
  fresh(): Promise<void>
  readonly isOver: boolean
  /** Starts no others; resolves when none is running. */
  end(): Promise<void>
}

/** Reads when somebody asks. One reading serves everyone who asks before it starts. */
export function createReadings(
  read: () => Promise<void>,
  /** Called for the first of several failures in a row. */
  onFailure: (error: unknown) => void,
): Readings {
  let asked: PromiseWithResolvers<void> | undefined
  let running: Promise<void> | undefined
  /** When the next reading may start. */
  let next = 0
  let isFailing = false
  let isOver = false

  function start(): void {
    running ??= run().finally(() => {
      running = undefined
      // Somebody may have asked after the last check.
      if (asked) start()
    })
  }

  async function run(): Promise<void> {
    while (asked && !isOver) {
      const rest = next - performance.now()
      if (rest > 0) await delay(rest)
      next = performance.now() + restMs
      const { resolve, reject } = asked
      asked = undefined
      try {
        await read()
        isFailing = false
        resolve()
      } catch (error) {
        if (!isFailing && !isOver) onFailure(error)
        isFailing = true
        reject(error)
      }
    }
    asked?.reject(new Error('the tail has ended'))
    asked = undefined
  }

  return {
    fresh: () => {
      if (!asked) {
        asked = Promise.withResolvers()
        // Not everybody who asks waits for the result.
        asked.promise.catch(() => {})
      }
      const { promise } = asked
      start()
      return promise
    },
    get isOver() {
      return isOver
    },
    end: async () => {
      isOver = true
      await running
    },
  }
}

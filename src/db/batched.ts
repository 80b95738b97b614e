import { setImmediate as turn } from 'node:timers/promises'
import { copyOf } from '../errors.ts'
import type { Observer } from '../observe/observer.ts'
import { beginShare } from '../observe/work.ts'
import type { Primary } from './servers/primary.ts'

/** The most keys of one statement. */
const batchMax = 128
/** Concurrent statements. What arrives meanwhile forms the next batch, so batches grow with the load. */
const underWayMax = 2
/**
 * How long the callers of an answered batch may run in one event loop turn, since each may parse a large input next;
 * the clock is read after every `goOnStep` callers. A turn for every few callers would split the next batches.
 */
const goOnMs = 10
const goOnStep = 16
/** Resolves in the same turn, after what the answered callers do next. */
const haveGoneOn = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve))

/** Bounds how many callers wait while there is no primary. */
export type Line = Pick<Primary, 'enter' | 'leave'>

type Waiting<V> = {
  resolve(value: V | undefined): void
  reject(error: unknown): void
  end: (() => void) | undefined
}

/** The name of the batches in metrics and traces. */
type Watched = { site: string; observer: Observer }

/**
 * Combines what is asked for in one turn of the event loop, or while other batches run, into one call of `load`,
 * which starts after all of it was asked for. Nothing is cached, so a revocation applies to the next request.
 */
export function batched<V, K = string>(
  load: (keys: K[]) => Promise<Map<K, V>>,
  { line, watched, max = batchMax }: { line?: Line; watched?: Watched; max?: number } = {},
): (key: K) => Promise<V | undefined> {
  let waiting = new Map<K, Waiting<V>[]>()
  let underWay = 0
  let isPlanned = false

  const flush = async (): Promise<void> => {
    if (waiting.size === 0) return
    const batch = waiting
    waiting = new Map()
    underWay += 1
    watched?.observer.observe('batch_size', batch.size, watched.site)
    let settle: (reader: Waiting<V>, key: K) => void
    try {
      const found = await load([...batch.keys()])
      settle = (reader, key) => reader.resolve(found.get(key))
    } catch (error) {
      settle = (reader) => reader.reject(copyOf(error))
    }
    underWay -= 1
    plan()
    let gone = 0
    let began = performance.now()
    const pause = async (): Promise<void> => {
      await haveGoneOn()
      if (performance.now() - began < goOnMs) return
      await turn()
      began = performance.now()
    }
    for (const [key, readers] of batch)
      for (const reader of readers) {
        if (gone > 0 && gone % goOnStep === 0) await pause()
        gone += 1
        line?.leave()
        reader.end?.()
        settle(reader, key)
      }
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
      line?.enter()
      const reader = { resolve, reject, end: watched && beginShare(watched.observer, watched.site) }
      const readers = waiting.get(key)
      if (readers) return readers.push(reader)
      waiting.set(key, [reader])
      if (waiting.size === max) void flush()
      else plan()
    })
}

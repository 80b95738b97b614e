import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { cut } from './dial.ts'
import type { Fence } from './fence.ts'

export class Behind extends Error {}

/** A server that has not answered for this long is not used. */
export const silenceMs = 1_000
const probeMs = 1_000
const pausesMs = [1, 3, 10, 30, 100]

export type Fitness = {
  /** Reads may be sent to it. */
  readonly isFit: boolean
  /** Why not. */
  readonly why: unknown
  /** How long the last fence took to be replayed; grows while one is not replayed yet, or while the server is away. */
  readonly lagMs: number
  /** Resolves once it is known whether it is fit. */
  readonly judged: Promise<void>
  /** A connection or a read has failed. */
  failed(error: unknown): void
  close(): Promise<void>
}

export type FitnessDeps = {
  fence: Fence
  lagMaxMs: number
  /** Opens a connection to the standby. */
  connect(): Promise<pg.Client>
  /** Rejects if the standby is not to be used; resolves to the place that it has replayed. */
  judge(client: pg.Client): Promise<number>
  /** `why` is undefined once it is fit. Not called after `close`. */
  onChange(why: unknown): void
  /** Called first of all when it becomes fit or unfit. `watcher` is the connection that judges it. */
  onTurn(isFit: boolean, watcher: pg.Client | undefined): void
}

/** Finds out every second whether a standby is fit for reads, and how far behind, on a connection of its own. */
export function watchFitness(deps: FitnessDeps): Fitness {
  const { fence, lagMaxMs, connect, judge, onChange, onTurn } = deps
  let watcher: pg.Client | undefined
  let isFit: boolean | undefined
  let why: unknown
  let lagMs = 0
  let thereAt = performance.now()
  const { promise: judged, resolve: nowJudged } = Promise.withResolvers<void>()
  const closing = new AbortController()

  const change = (toFit: boolean, error?: unknown): void => {
    why = error
    if (isFit === toFit) return
    isFit = toFit
    nowJudged()
    onTurn(isFit, watcher)
    if (!closing.signal.aborted) onChange(why)
  }
  const place = async (client: pg.Client): Promise<number> => {
    const timer = setTimeout(() => cut(client), silenceMs)
    try {
      return await judge(client)
    } finally {
      clearTimeout(timer)
    }
  }
  const probe = async (): Promise<void> => {
    await fence.take().catch(() => {})
    const { newest } = fence
    if (newest === null) return
    try {
      watcher ??= await connect()
      const began = performance.now()
      for (let tries = 0; ; tries += 1) {
        const isThere = (await place(watcher)) >= newest
        lagMs = performance.now() - began
        if (lagMs > lagMaxMs) change(false, new Behind(`it is ${Math.round(lagMs)} ms behind`))
        else if (isThere) change(true)
        if (isThere) thereAt = performance.now()
        if (isThere || closing.signal.aborted) return
        await delay(pausesMs[Math.min(tries, pausesMs.length - 1)])
      }
    } catch (error) {
      if (watcher) cut(watcher)
      watcher = undefined
      lagMs = performance.now() - thereAt
      change(false, error)
    }
  }
  const watch = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await probe()
      await delay(probeMs, undefined, { signal: closing.signal, ref: false }).catch(() => {})
    }
  }
  const watching = watch()
  return {
    get isFit() {
      return isFit === true
    },
    get why() {
      return why
    },
    get lagMs() {
      return lagMs
    },
    judged,
    // The first reason stays: connections cut because the server is unfit fail too, and explain less.
    failed: (error) => {
      if (isFit) change(false, error)
    },
    close: async () => {
      closing.abort()
      await watching
      await watcher?.end().catch(() => {})
    },
  }
}

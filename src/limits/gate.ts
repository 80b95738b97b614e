import { AsyncLocalStorage } from 'node:async_hooks'
import { busy, refusal } from '../errors.ts'

/**
 * Divides the pooled connections among callers, so that no caller (an account, or an address without one) takes
 * them from the others. `perCaller`: the most connections that one caller uses at once; null: no limit. `reads`:
 * the most that all callers use for reads, whose answers may be large and must fit into memory together.
 */
type GateOptions = { perCaller: number | null; reads: number }

/** Equals the time that a request waits for a pooled connection. */
const waitMs = 5_000
/** Waiting calls per caller; more are refused immediately. */
const waitingMax = 500

type Waiting = { isRead: boolean; admit(): void }
type Caller = { running: number; reading: number; waiting: Waiting[] }

export class Gate {
  readonly #perCaller: number
  /** One less than all, so that another caller can always read. */
  readonly #readsPerCaller: number
  #readsLeft: number
  #waiting = 0
  /** Callers with running or waiting work only; the one admitted longest ago comes first. */
  readonly #callers = new Map<string, Caller>()
  /**
   * Work nested in admitted work is admitted too: if it waited, the outer work would hold the place that it waits
   * for. `isRunning` is false once the outer work has ended, since a promise that was not awaited may outlive it.
   */
  readonly #admitted = new AsyncLocalStorage<{ isRunning: boolean }>()

  constructor({ perCaller, reads }: GateOptions) {
    this.#perCaller = perCaller ?? Number.POSITIVE_INFINITY
    this.#readsPerCaller = Math.max(1, reads - 1)
    this.#readsLeft = reads
  }

  /**
   * Runs a transaction when it is the caller's turn. Refuses with `service_unavailable` if that takes too long, as
   * a pool without a free connection does, and with `busy` if too many calls of the caller are waiting.
   */
  async run<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.#admitted.getStore()?.isRunning) return await work()
    const waited = this.#enter(caller, false)
    if (waited) await waited
    const own = { isRunning: true }
    try {
      return await this.#admitted.run(own, work)
    } finally {
      own.isRunning = false
      this.#leave(caller, false)
    }
  }

  /** The same for a single reading statement, in which no other work can be nested. */
  async read<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.#admitted.getStore()?.isRunning) return await work()
    const waited = this.#enter(caller, true)
    if (waited) await waited
    try {
      return await work()
    } finally {
      this.#leave(caller, true)
    }
  }

  /** Whether the caller has only one call admitted. */
  isAlone(caller: string): boolean {
    return this.#callers.get(caller)?.running === 1
  }

  /** Returns undefined if admitted immediately, so that nothing is awaited. */
  #enter(key: string, isRead: boolean): Promise<void> | undefined {
    const caller = this.#callers.get(key) ?? { running: 0, reading: 0, waiting: [] }
    this.#callers.set(key, caller)
    if (caller.waiting.length === 0 && this.#fits(caller, isRead)) {
      this.#take(caller, isRead)
      return undefined
    }
    if (caller.waiting.length >= waitingMax) throw busy()
    return this.#wait(key, caller, isRead)
  }

  #leave(key: string, isRead: boolean): void {
    const caller = this.#callers.get(key) as Caller
    caller.running -= 1
    if (isRead) {
      caller.reading -= 1
      this.#readsLeft += 1
    }
    this.#forgetIdle(key, caller)
    if (this.#waiting > 0) this.#admitWaiting()
  }

  #fits(caller: Caller, isRead: boolean): boolean {
    if (caller.running >= this.#perCaller) return false
    return !isRead || (this.#readsLeft > 0 && caller.reading < this.#readsPerCaller)
  }

  #take(caller: Caller, isRead: boolean): void {
    caller.running += 1
    if (!isRead) return
    caller.reading += 1
    this.#readsLeft -= 1
  }

  #wait(key: string, caller: Caller, isRead: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        isRead,
        admit: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      const timer = setTimeout(() => {
        caller.waiting.splice(caller.waiting.indexOf(one), 1)
        this.#waiting -= 1
        this.#forgetIdle(key, caller)
        reject(refusal('service_unavailable'))
      }, waitMs)
      caller.waiting.push(one)
      this.#waiting += 1
    })
  }

  /** Callers take turns; the calls of each are served in order of arrival. */
  #admitWaiting(): void {
    // The ended call freed a place of its caller and perhaps one for reads, so at most two calls fit now.
    let left = 2
    for (const [key, caller] of this.#callers) {
      const [next] = caller.waiting
      if (!next || !this.#fits(caller, next.isRead)) continue
      caller.waiting.shift()
      this.#waiting -= 1
      this.#take(caller, next.isRead)
      this.#callers.delete(key)
      this.#callers.set(key, caller)
      next.admit()
      left -= 1
      if (left === 0 || this.#waiting === 0) return
    }
  }

  #forgetIdle(key: string, { running, waiting }: Caller): void {
    if (running === 0 && waiting.length === 0) this.#callers.delete(key)
  }
}

import { AsyncLocalStorage } from 'node:async_hooks'
import type { ReadOnly } from '../db/db.ts'
import type { Sql } from '../db/sql.ts'
import { refusal } from '../errors.ts'

/**
 * Shares out the pooled connections, so that no caller, an account or an address without one, takes them from
 * the others. `perCaller`: how many one caller uses at once; null: as many as there are. `reads`: how many all of
 * them use for reads, whose answers may be large and have to fit into memory together.
 */
export type GateOptions = { perCaller: number | null; reads: number }

/** As long as a request waits for a connection of the pool. */
const waitMs = 5_000
/** Of one caller; more are refused at once. */
const waitingMax = 500

type Waiting = { isRead: boolean; admit(): void }
type Caller = { running: number; reading: number; waiting: Waiting[] }

export class Gate {
  readonly #perCaller: number
  /** One less than all, so that somebody else can always read. */
  readonly #readsPerCaller: number
  #readsLeft: number
  #waiting = 0
  /** Callers of whom something runs or waits, and no others; the one admitted longest ago first. */
  readonly #callers = new Map<string, Caller>()
  /**
   * What runs within work that was admitted is admitted too. Were it to wait, those who wait for it would hold
   * what it waits for. A promise that is left behind outlives its work, whose turn is then over.
   */
  readonly #admitted = new AsyncLocalStorage<{ isRunning: boolean }>()

  constructor({ perCaller, reads }: GateOptions) {
    this.#perCaller = perCaller ?? Number.POSITIVE_INFINITY
    this.#readsPerCaller = Math.max(1, reads - 1)
    this.#readsLeft = reads
  }

  /**
   * Runs a transaction when it is the caller's turn; refuses with `service_unavailable` where that takes too long,
   * as a pool without a free connection does, and with `busy` where too many of the caller wait already.
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

  /** The same for one statement that reads, within which nothing else of ours runs. */
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

  /** Undefined: admitted at once. */
  #enter(key: string, isRead: boolean): Promise<void> | undefined {
    const caller = this.#callers.get(key) ?? { running: 0, reading: 0, waiting: [] }
    this.#callers.set(key, caller)
    if (caller.waiting.length === 0 && this.#fits(caller, isRead)) {
      this.#take(caller, isRead)
      return undefined
    }
    if (caller.waiting.length >= waitingMax) throw refusal('busy', { retry_after: 1 })
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

  /** Callers take turns, and the calls of each go in the order in which they came. */
  #admitWaiting(): void {
    // What ended gave back a place of its caller and perhaps one for reads, so at most two calls fit now.
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

/** The reads of a query: each that takes a connection of the pool takes its caller's turn; point reads need none. */
export class GatedReads implements ReadOnly {
  readonly #db: ReadOnly
  readonly #gate: Gate
  readonly #caller: () => string
  constructor(db: ReadOnly, gate: Gate, caller: () => string) {
    this.#db = db
    this.#gate = gate
    this.#caller = caller
  }
  rows<T>(query: Sql): Promise<T[]> {
    return this.#gate.read(this.#caller(), () => this.#db.rows<T>(query))
  }
  first<T>(query: Sql): Promise<T | undefined> {
    return this.#gate.read(this.#caller(), () => this.#db.first<T>(query))
  }
  one<T>(query: Sql): Promise<T> {
    return this.#gate.read(this.#caller(), () => this.#db.one<T>(query))
  }
  point<T>(query: Sql): Promise<T[]> {
    return this.#db.point<T>(query)
  }
}

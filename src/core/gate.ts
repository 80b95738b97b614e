import { AsyncLocalStorage } from 'node:async_hooks'
import type { ReadOnly } from '../db/db.ts'
import type { Sql } from '../db/sql.ts'
import { refusal } from '../errors.ts'

/**
 * How many pooled connections one caller uses at once: an account, or an address without one. Others of that
 * caller wait their turn, so that nobody takes the whole pool and everybody else waits for that one alone.
 */
export type Gate = {
  /**
   * Runs `work` when it is the caller's turn; refuses with `service_unavailable` where that takes too long, as a
   * pool without a free connection does, and with `busy` where too many wait already.
   */
  run<T>(caller: string, work: () => Promise<T>): Promise<T>
  /** The same for one statement, within which nothing else of ours runs. */
  statement<T>(caller: string, work: () => Promise<T>): Promise<T>
}

/** As long as a request waits for a connection of the pool. */
const waitMs = 5_000
/** Of one caller; more are refused at once. */
const waitingMax = 500

type Waiting = { admit(): void }
type Caller = { running: number; waiting: Set<Waiting> }

export function createGate(max: number | null): Gate {
  if (max === null) return { run: (_caller, work) => work(), statement: (_caller, work) => work() }
  /** Callers of whom something runs, and no others. */
  const callers = new Map<string, Caller>()
  /**
   * What runs within work that was admitted is admitted too. Were it to wait, those who wait for it would hold
   * what it waits for. A promise that is left behind outlives its work, whose turn is then over.
   */
  const admitted = new AsyncLocalStorage<{ isRunning: boolean }>()

  /** Undefined: admitted at once. */
  const enter = (key: string): Promise<void> | undefined => {
    const caller = callers.get(key)
    if (caller === undefined) {
      callers.set(key, { running: 1, waiting: new Set() })
      return undefined
    }
    if (caller.running < max) {
      caller.running += 1
      return undefined
    }
    return turn(caller.waiting)
  }
  const leave = (key: string): void => {
    const caller = callers.get(key) as Caller
    // The place goes to the one who waits longest.
    const [next] = caller.waiting
    if (next) {
      caller.waiting.delete(next)
      next.admit()
    } else if (caller.running > 1) caller.running -= 1
    else callers.delete(key)
  }

  return {
    run: async (key, work) => {
      if (admitted.getStore()?.isRunning) return await work()
      const waited = enter(key)
      if (waited) await waited
      const own = { isRunning: true }
      try {
        return await admitted.run(own, work)
      } finally {
        own.isRunning = false
        leave(key)
      }
    },
    statement: async (key, work) => {
      if (admitted.getStore()?.isRunning) return await work()
      const waited = enter(key)
      if (waited) await waited
      try {
        return await work()
      } finally {
        leave(key)
      }
    },
  }
}

function turn(waiting: Set<Waiting>): Promise<void> {
  if (waiting.size >= waitingMax) throw refusal('busy', { retry_after: 1 })
  return new Promise((resolve, reject) => {
    const one: Waiting = {
      admit: () => {
        clearTimeout(timer)
        resolve()
      },
    }
    const timer = setTimeout(() => {
      waiting.delete(one)
      reject(refusal('service_unavailable'))
    }, waitMs)
    waiting.add(one)
  })
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
    return this.#gate.statement(this.#caller(), () => this.#db.rows<T>(query))
  }
  first<T>(query: Sql): Promise<T | undefined> {
    return this.#gate.statement(this.#caller(), () => this.#db.first<T>(query))
  }
  one<T>(query: Sql): Promise<T> {
    return this.#gate.statement(this.#caller(), () => this.#db.one<T>(query))
  }
  point<T>(query: Sql): Promise<T[]> {
    return this.#db.point<T>(query)
  }
}

import { AsyncLocalStorage } from 'node:async_hooks'
import { busy, refusal } from '../errors.ts'
import { currentWork } from '../observe/work.ts'

/**
 * Divides the pooled connections among callers, so that no caller (an account, or an address without one) takes
 * them from the others. `perCaller`: the most connections that one caller uses at once, besides one for a route;
 * null: no max. `reads`: the most that all callers use for reads, whose answers may be large and must fit into memory
 * together.
 */
type GateOptions = { perCaller: number | null; reads: number }

/** Equals the time that a request waits for a pooled connection. */
const waitMs = 5_000
/** Waiting calls per caller; more are refused immediately. */
const waitingMax = 500

type Kind = 'read' | 'transaction' | 'route'
type Waiting = { kind: Kind; admit(): void }
/** `running` counts all, `reading` and `routes` those of a kind. */
type Caller = { running: number; reading: number; routes: number; waiting: Waiting[] }

export class Gate {
  readonly #perCaller: number
  /** One less than all, so that another caller can always read. */
  readonly #readsPerCaller: number
  #readsLeft: number
  /** Callers with running or waiting work only. */
  readonly #callers = new Map<string, Caller>()
  /** Callers with waiting work only; the one whose turn is next comes first. */
  readonly #queue = new Set<Caller>()
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
   * a pool without a free connection does, and with `busy` if too many calls of the caller are waiting. Methods that
   * hold or await all places do not keep one's own sign-in out: one route at a time takes a place above the max.
   */
  async run<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.#admitted.getStore()?.isRunning) return await work()
    const kind = kindOf('transaction')
    const waited = this.#enter(caller, kind)
    if (waited) await waited
    const own = { isRunning: true }
    try {
      return await this.#admitted.run(own, work)
    } finally {
      own.isRunning = false
      this.#leave(caller, kind)
    }
  }

  /** The same for a single reading statement, in which no other work can be nested. */
  async read<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.#admitted.getStore()?.isRunning) return await work()
    const kind = kindOf('read')
    const waited = this.#enter(caller, kind)
    if (waited) await waited
    try {
      return await work()
    } finally {
      this.#leave(caller, kind)
    }
  }

  /** Whether the caller has only one call admitted. */
  isAlone(caller: string): boolean {
    return this.#callers.get(caller)?.running === 1
  }

  /** Returns undefined if admitted immediately, so that nothing is awaited. */
  #enter(key: string, kind: Kind): Promise<void> | undefined {
    const caller = this.#callers.get(key) ?? { running: 0, reading: 0, routes: 0, waiting: [] }
    this.#callers.set(key, caller)
    if (isFirstRoute(caller, kind) || (caller.waiting.length === 0 && this.#fits(caller, kind))) {
      this.#take(caller, kind)
      return undefined
    }
    if (isCrowded(caller, kind)) throw busy()
    return this.#wait(key, caller, kind)
  }

  #leave(key: string, kind: Kind): void {
    const caller = this.#callers.get(key) as Caller
    caller.running -= 1
    if (kind === 'route') caller.routes -= 1
    if (kind === 'read') {
      caller.reading -= 1
      this.#readsLeft += 1
      this.#admit(caller, { reads: false })
      this.#admitNextRead()
    } else this.#admit(caller)
    this.#forgetIdle(key, caller)
  }

  #fits(caller: Caller, kind: Kind): boolean {
    if (caller.running >= this.#perCaller) return false
    return kind !== 'read' || (this.#readsLeft > 0 && caller.reading < this.#readsPerCaller)
  }

  #take(caller: Caller, kind: Kind): void {
    caller.running += 1
    if (kind === 'route') caller.routes += 1
    if (kind !== 'read') return
    caller.reading += 1
    this.#readsLeft -= 1
  }

  #wait(key: string, caller: Caller, kind: Kind): Promise<void> {
    return new Promise((resolve, reject) => {
      const one: Waiting = {
        kind,
        admit: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      const timer = setTimeout(() => {
        caller.waiting.splice(caller.waiting.indexOf(one), 1)
        if (caller.waiting.length === 0) this.#queue.delete(caller)
        // A read that waited may have kept back a transaction.
        this.#admit(caller)
        this.#forgetIdle(key, caller)
        reject(refusal('service_unavailable'))
      }, waitMs)
      caller.waiting.push(one)
      this.#queue.add(caller)
    })
  }

  /** A free place for reads goes to the caller whose turn it is. Only those at a max of their own are passed over. */
  #admitNextRead(): void {
    for (const caller of this.#queue) {
      if (this.#readsLeft === 0) return
      this.#admit(caller)
    }
  }

  /** Admits the calls of a caller that fit now, in order of arrival; its next turn comes after those of the others. */
  #admit(caller: Caller, { reads = true } = {}): void {
    const { waiting } = caller
    const isNext = ({ kind }: Waiting): boolean => (reads || kind !== 'read') && this.#fits(caller, kind)
    while (waiting[0] && isNext(waiting[0])) this.#admitAt(caller, 0)
    const route = waiting.findIndex(({ kind }) => isFirstRoute(caller, kind))
    if (route >= 0) this.#admitAt(caller, route)
  }

  #admitAt(caller: Caller, index: number): void {
    const [next] = caller.waiting.splice(index, 1) as [Waiting]
    this.#queue.delete(caller)
    if (caller.waiting.length > 0) this.#queue.add(caller)
    this.#take(caller, next.kind)
    next.admit()
  }

  #forgetIdle(key: string, { running, waiting }: Caller): void {
    if (running === 0 && waiting.length === 0) this.#callers.delete(key)
  }
}

const kindOf = (ofMethod: Kind): Kind => (currentWork()?.isRoute ? 'route' : ofMethod)

const isFirstRoute = ({ routes }: Caller, kind: Kind): boolean => kind === 'route' && routes === 0

/** Waiting methods do not crowd out routes. */
const isCrowded = ({ waiting }: Caller, kind: Kind): boolean =>
  waiting.length >= waitingMax &&
  (kind !== 'route' || waiting.filter((one) => one.kind === kind).length >= waitingMax)

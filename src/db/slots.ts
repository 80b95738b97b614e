import type pg from 'pg'
import { farewell } from './servers/dial.ts'
import { unavailable } from './servers/failure.ts'
import type { Primary } from './servers/primary.ts'

/** A connection on loan. */
export type Slot = pg.Client & {
  /** Gives it back; a broken one is closed. */
  release(isBroken?: boolean): void
  /** Its statements are not prepared under a name. */
  isNameless: boolean
  /** It was set read-only, because its last single statement was a read. */
  isReadOnly: boolean
  /**
   * PostgreSQL answers a COMMIT with success even if its wait for the synchronous standby was cancelled, and adds a
   * warning. Then this is true: this server holds the commit alone, and a fail-over loses it.
   */
  isUnconfirmed: boolean
}

type Slots = {
  /**
   * The connection that was used last, else a new one, else the next to be given back. If that takes long, those that
   * `mayExceed` the max share one more.
   */
  take(mayExceed?: boolean): Promise<Slot>
  idle(): pg.Client | undefined
  isBusy(): boolean
  load(): { open: number; idle: number; waiting: number }
  close(): Promise<void>
}

type Waiter = {
  resolve(slot: Slot | Promise<Slot>): void
  reject(error: unknown): void
  since: number
  mayExceed: boolean
}
type SlotsOptions = { max: number; waitMs: number; onOpen(slot: Slot): void; onError(error: unknown): void }

/** How long a call waits while all connections are in use. */
const busyMs = 5_000
const idleMs = 30_000
/** After this wait the connections seem to be stuck, as on a locked table. */
const stuckMs = 300
/** Max connections being opened at once, so that they do not overwhelm a new primary. */
const openingMax = 4

/** Opens connections to a server, and knows which of them still lead to the right one. */
export type Way = Pick<
  Primary,
  'connect' | 'isCertain' | 'isStillFit' | 'alive' | 'isOpen' | 'isAway' | 'enter' | 'leave'
>

/** The connections that one statement or transaction has to itself. */
export function openSlots(primary: Way, { max, waitMs, onOpen, onError }: SlotsOptions): Slots {
  const idle: { slot: Slot; since: number }[] = []
  const used = new Set<Slot>()
  const waiting: Waiter[] = []
  let opening = 0
  /** The used one above the max. */
  let surplus: Slot | undefined
  /** A waiter that may exceed the max has waited long. */
  let isStuck = false
  let closing: PromiseWithResolvers<void> | undefined

  const isFull = (): boolean => used.size - (surplus ? 1 : 0) >= max
  const lend = (slot: Slot): void => {
    if (used.size === 0) primary.alive()
    if (isFull()) surplus = slot
    used.add(slot)
  }
  const takeBack = (slot: Slot): boolean => {
    if (slot === surplus) surplus = undefined
    return used.delete(slot)
  }
  const drop = (slot: Slot): void => {
    void slot.end().catch(() => {})
    grow()
    if (closing && used.size + opening === 0) closing.resolve()
  }
  const release = (slot: Slot, isBroken: boolean): void => {
    if (!takeBack(slot)) throw new Error('This connection was given back before.')
    slot.isNameless = false
    if (isBroken || closing || isUnusable(slot)) {
      drop(slot)
      return
    }
    primary.alive()
    const at = isFull() ? waiting.findIndex(({ mayExceed }) => mayExceed) : 0
    const [next] = at < 0 ? [] : waiting.splice(at, 1)
    if (next) next.resolve(certain(slot, next.mayExceed))
    else idle.push({ slot, since: performance.now() })
  }
  /** Settles doubts about the connection before it is used again. */
  const certain = (slot: Slot, mayExceed: boolean): Slot | Promise<Slot> => {
    lend(slot)
    if (primary.isCertain(slot)) return slot
    return primary.isStillFit(slot).then((isFit) => {
      if (isFit) return slot
      takeBack(slot)
      drop(slot)
      return take(mayExceed)
    })
  }
  const adopt = (client: pg.Client): Slot => {
    const slot = Object.assign(client, {
      release: (isBroken = false) => release(slot, isBroken),
      isNameless: false,
      isReadOnly: false,
      isUnconfirmed: false,
    })
    slot.on('notice', ({ code, routine }) => {
      // RAISE WARNING in a trigger of the consumer has the same code.
      if (code === '01000' && routine !== 'exec_stmt_raise') slot.isUnconfirmed = true
    })
    slot.on('error', (error) => {
      // While the pool closes the server may be first to end one, as when a test drops its database.
      if (!used.has(slot) && !closing) onError(error)
    })
    slot.once('end', () => {
      const at = idle.findIndex((one) => one.slot === slot)
      if (at >= 0) idle.splice(at, 1)
    })
    onOpen(slot)
    return slot
  }
  const grow = (): void => {
    // One above the max was left idle, and a used one has ended since.
    const spare = waiting[0] && !isFull() ? idle.pop() : undefined
    if (spare) {
      const { resolve, mayExceed } = waiting.shift() as Waiter
      resolve(certain(spare.slot, mayExceed))
    }
    const openMax = surplus || isStuck ? max + 1 : max
    while (waiting.length > opening && opening < openingMax && used.size + idle.length + opening < openMax) {
      opening += 1
      void primary.connect().then(
        (client) => {
          opening -= 1
          used.add(adopt(client))
          release(client as Slot, false)
          grow()
        },
        (error) => {
          opening -= 1
          refuseLate(error)
          if (closing && used.size + opening === 0) closing.resolve()
        },
      )
    }
  }
  /** Refuses the waiters whose time is over, or all of them once the breaker is open. */
  const refuseLate = (error: unknown): void => {
    const limit = primary.isOpen ? 0 : primary.isAway ? waitMs : busyMs
    while (waiting[0] && performance.now() - waiting[0].since >= limit)
      waiting.shift()?.reject(unavailable(error))
  }
  const sweep = setInterval(() => {
    refuseLate(new Error('no connection was free'))
    while (idle[0] && performance.now() - idle[0].since > idleMs) {
      const { slot } = idle.shift() as { slot: Slot }
      drop(slot)
    }
    isStuck = waiting.some(({ mayExceed, since }) => mayExceed && performance.now() - since > stuckMs)
    grow()
  }, 100).unref()

  const take = async (mayExceed = false): Promise<Slot> => {
    if (closing) throw unavailable(new Error('the pool is closed'))
    const free = mayExceed || !isFull() ? idle.pop() : undefined
    if (free) return certain(free.slot, mayExceed)
    primary.enter()
    try {
      return await new Promise<Slot>((resolve, reject) => {
        waiting.push({ resolve, reject, since: performance.now(), mayExceed })
        grow()
      })
    } finally {
      primary.leave()
    }
  }
  return {
    take,
    idle: () => idle.at(-1)?.slot,
    isBusy: () => used.size > 0,
    load: () => ({ open: used.size + idle.length, idle: idle.length, waiting: waiting.length }),
    close: async () => {
      clearInterval(sweep)
      closing = Promise.withResolvers()
      for (const waiter of waiting.splice(0)) waiter.reject(unavailable(new Error('the pool is closed')))
      for (const { slot } of idle.splice(0)) void farewell(slot)
      if (used.size + opening > 0) await closing.promise
    },
  }
}

/** Closed, or in a transaction that a statement of the consumer began, and that nothing would commit. */
const isUnusable = (slot: Slot): boolean =>
  !(slot as unknown as { _queryable: boolean })._queryable || slot.getTransactionStatus() !== 'I'

import type { Log } from '../log/log.ts'
import type { Observer } from '../observe/observer.ts'
import type { Committed, Signal } from './committed.ts'
import { at, type Connection } from './connection.ts'
import { createDelivery, doubtMs } from './delivery.ts'
import { createOpenConnections } from './open-connections.ts'
import { allLost, type RecheckDeps } from './recheck.ts'

/** Registers the connections of this node and tells them what any node committed. */
export type Hub = {
  /** Registers a connection and returns how to remove it; undefined if the process is at its max. */
  add(connection: Connection): (() => void) | undefined
  isFull(): boolean
  /** How many connections this node has. */
  count(): { sockets: number; streams: number }
  /** Called after each commit, in the commit order of this process; never throws. */
  publish(committed: Committed): void
  /**
   * It is unknown whether a mutation that closes something was committed, so every node soon rechecks its connections.
   */
  doubt(): void
  /** Delivers what another node published; never throws. */
  receive(committed: Committed): void
  /** Hears everything that any node publishes; call the returned function to stop. */
  listen(hear: (committed: Committed) => void): () => void
  /** Rechecks every connection against the database now. `watch` does so regularly. */
  check(): Promise<void>
  /** Signals may be missing: rechecks every connection, and streams read the log without waiting for a signal. */
  catchUp(): void
  /** Starts the regular checks; call the returned function to stop them. */
  watch(): () => void
  /** Asks every connection to end, including those opened later. */
  leave(): void
  /** Takes connections again. */
  stay(): void
}

type HubDeps = RecheckDeps & {
  log: Log
  /** Max sockets plus streams. */
  connectionsMax: number
  socketsPerAccount: number
  /** Sends a commit of this process to the other nodes; never throws. */
  send(signal: Signal): void
  observer: Observer
}

/** The effect of a lost signal must be caught within 30 s. */
const checkMs = 25_000

export function createHub(deps: HubDeps): Hub {
  const { db, log, send, observer } = deps

  /** An error in one connection must affect neither the others nor the mutation. */
  const safely = (act: () => void): void => {
    try {
      act()
    } catch (error) {
      observer.count('effect_failures_total', 'live')
      log.error(
        { event: 'effect_failed', err: error },
        'a live connection could not be told what was committed',
      )
    }
  }
  const connections = createOpenConnections({
    ...deps,
    displace: (socket) => safely(() => socket.displaced?.()),
  })
  /** Tells the connections that lost their right; resolves to false if the database did not answer. */
  const check = async (which: Iterable<Connection>): Promise<boolean> => {
    try {
      for await (const [connection, reason] of allLost(which, deps))
        if (connections.has(connection)) safely(() => connection.lost(reason))
      return true
    } catch (error) {
      log.warn(
        { event: 'live_check_failed', err: error },
        'live connections could not be checked; they will be checked again soon',
      )
      return false
    }
  }

  const { deliver, listen } = createDelivery({ ...deps, connections, check, safely })

  let isLeaving = false
  const leave = (connection: Connection): void => safely(() => connection.leave?.())

  const add = (connection: Connection): (() => void) | undefined => {
    const remove = connections.add(connection)
    if (!remove) return undefined
    const { expires_at } = connection.credential
    const expire = (): void => safely(() => connection.lost('expired'))
    const cancel = expires_at === null ? () => {} : at(expires_at, db.clock, expire)
    // The caller is not ready for `leave` before `add` returns.
    if (isLeaving) queueMicrotask(() => leave(connection))
    return () => {
      cancel()
      remove()
    }
  }

  const unheard = { notifications: [], closings: [], wroteAudit: true }
  const catchUp = (): void => {
    void check(connections.all)
    safely(() => deliver(unheard))
  }
  const recheck = createDelayed(() => {
    catchUp()
    safely(() => send({ ...unheard, gap: true }))
  })

  return {
    add,
    isFull: connections.isFull,
    count: connections.count,
    publish: (given) => {
      const committed = given.closings.length > 0 ? { ...given, at: db.clock.now() } : given
      safely(() => deliver(committed))
      safely(() => send(committed))
    },
    doubt: recheck.begin,
    receive: (committed) => safely(() => deliver(committed, true)),
    listen,
    check: async () => void (await check(connections.all)),
    catchUp,
    watch: () => {
      const timer = setInterval(check, checkMs, connections.all).unref()
      return () => {
        clearInterval(timer)
        recheck.stop()
      }
    },
    leave: () => {
      isLeaving = true
      for (const connection of [...connections.all]) leave(connection)
    },
    stay: () => {
      isLeaving = false
    },
  }
}

/** Runs `act` a while after it is begun, and again a while later if it was begun anew meanwhile. */
function createDelayed(act: () => void): { begin(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined
  let isBegunAnew = false
  const begin = (): void => {
    // What began anew may take longer than is left of the wait.
    if (timer) isBegunAnew = true
    else timer = setTimeout(run, doubtMs).unref()
  }
  const run = (): void => {
    timer = undefined
    act()
    if (isBegunAnew) begin()
    isBegunAnew = false
  }
  return { begin, stop: () => clearTimeout(timer) }
}

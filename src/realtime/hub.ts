import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../db/db.ts'
import type { Log } from '../log/log.ts'
import type { Notification } from '../notifications.ts'
import { noObserver, type Observer } from '../observe/observer.ts'
import { type Closing, type Committed, type Signal, verdictOf } from './committed.ts'
import { at, type Connection, hasExpired } from './connection.ts'
import { createDoubts } from './doubts.ts'
import { findLost } from './recheck.ts'

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

type HubOptions = {
  db: Database
  log: Log
  /** Max sockets plus streams. */
  connectionsMax: number
  socketsPerAccount: number
  /** Sends a commit of this process to the other nodes; never throws. */
  send(signal: Signal): void
  /** Whether a daemon token is still valid. */
  holdsDaemon(token: string): Promise<boolean>
  /** Roles whose holders need a strong credential. */
  strongRoles: readonly string[]
  observer?: Observer
}

/** The effect of a lost signal must be caught within 30 s. */
const checkMs = 25_000
/** Time for the COMMIT to finish, or for the database to come back. */
const doubtMs = 1_000

export function createHub(options: HubOptions): Hub {
  const { db, log, connectionsMax, socketsPerAccount, send, holdsDaemon, strongRoles } = options
  const { observer = noObserver } = options
  const listeners = new Set<(committed: Committed) => void>()
  const connections = new Set<Connection>()
  const doubts = createDoubts()
  const byAccount = new Map<string, Set<Connection>>()

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
  const deliver = (committed: Committed, isLate = false): void => {
    const doubtful = new Map<Connection, Closing[]>()
    for (const hear of listeners) safely(() => hear(committed))
    const notificationsOf = byRecipient(committed.notifications)
    for (const connection of concerned(committed)) {
      const notifications = connection.kind === 'socket' ? notificationsOf(connection.account_id) : []
      const all = committed.closings.filter((closing) => concerns(closing, connection))
      const { closings, ifSpared } = isLate ? parted(all, connection) : { closings: all }
      if (ifSpared) {
        doubtful.set(connection, ifSpared)
        doubts.begin(connection)
      }
      if (committed.at !== undefined && verdictOf(closings, connection) === 'own')
        observer.observe('revocation_close_seconds', Math.max(0, db.clock.now() - committed.at) / 1000)
      const isHeld =
        notifications.length > 0 && doubts.holds(connection, { ...committed, notifications, closings: [] })
      const heard = { ...committed, notifications: isHeld ? [] : notifications, closings }
      if (heard.notifications.length > 0 || closings.length > 0) safely(() => connection.hear(heard))
    }
    if (doubtful.size > 0) void settle(committed, doubtful)
  }
  /** Closes the connections whose credential is gone; once that is known, the others receive the rest. */
  const settle = async (committed: Committed, doubtful: Map<Connection, Closing[]>): Promise<void> => {
    const open = () => [...doubtful.keys()].filter((connection) => connections.has(connection))
    while (!(await check(open()))) await delay(doubtMs, undefined, { ref: false })
    for (const [connection, closings] of doubtful) {
      if (closings.length > 0 && connections.has(connection))
        safely(() => connection.hear({ ...committed, notifications: [], closings }))
      for (const unheard of doubts.end(connection))
        if (connections.has(connection)) safely(() => connection.hear(unheard))
    }
  }
  /**
   * A copy, since connections may remove themselves while hearing. Most commits concern no connection and cost nothing
   * here.
   */
  const concerned = ({ notifications, closings }: Committed): Connection[] => {
    if (closings.some(({ kind }) => kind === 'actor' || kind === 'keeper')) return [...connections]
    const accounts = new Set(notifications.map(({ account_id }) => account_id))
    for (const closing of closings) if ('account_id' in closing) accounts.add(closing.account_id)
    return [...accounts].flatMap((account_id) => [...(byAccount.get(account_id) ?? [])])
  }

  let isLeaving = false
  const leave = (connection: Connection): void => safely(() => connection.leave?.())

  const add = (connection: Connection): (() => void) | undefined => {
    if (connections.size >= connectionsMax) return undefined
    const { account_id, credential } = connection
    const own = byAccount.get(account_id) ?? new Set()
    byAccount.set(account_id, own)
    const sockets = [...own].filter(({ kind }) => kind === 'socket')
    if (connection.kind === 'socket' && sockets.length >= socketsPerAccount)
      safely(() => sockets[0]?.displaced?.())
    connections.add(connection)
    // The displaced socket may have been the last of the account and removed the set.
    byAccount.set(account_id, own.add(connection))
    const cancel =
      credential.expires_at === null
        ? () => {}
        : at(credential.expires_at, db.clock, () => safely(() => connection.lost('expired')))
    // The caller isn't ready for `leave` before `add` returns.
    if (isLeaving) queueMicrotask(() => leave(connection))
    return () => {
      cancel()
      connections.delete(connection)
      own.delete(connection)
      if (own.size === 0 && byAccount.get(account_id) === own) byAccount.delete(account_id)
    }
  }

  /** Resolves to false if the database did not answer. */
  const check = async (which: Iterable<Connection>): Promise<boolean> => {
    try {
      for (const [connection, reason] of await findLost(db, which, strongRoles)) {
        // The cleanup may already have removed the expired row.
        const isExpired = reason === 'revoked' && hasExpired(connection.credential, db.clock)
        if (connections.has(connection)) safely(() => connection.lost(isExpired ? 'expired' : reason))
      }
      for (const connection of [...which])
        if (connection.daemon !== undefined && !(await holdsDaemon(connection.daemon)))
          if (connections.has(connection)) safely(() => connection.lost('revoked'))
      return true
    } catch (error) {
      log.warn(
        { event: 'live_check_failed', err: error },
        'live connections could not be checked; they will be checked again soon',
      )
      return false
    }
  }

  const unheard = { notifications: [], closings: [], wroteAudit: true }
  const catchUp = (): void => {
    void check(connections)
    safely(() => deliver(unheard))
  }
  let doubted: NodeJS.Timeout | undefined
  let isDoubtedAgain = false
  const doubt = (): void => {
    // The COMMIT of this doubt may take longer than is left of the wait.
    if (doubted) isDoubtedAgain = true
    else doubted = setTimeout(recheck, doubtMs).unref()
  }
  const recheck = (): void => {
    doubted = undefined
    catchUp()
    safely(() => send({ ...unheard, gap: true }))
    if (isDoubtedAgain) doubt()
    isDoubtedAgain = false
  }

  return {
    add,
    isFull: () => connections.size >= connectionsMax,
    count: () => {
      let sockets = 0
      for (const { kind } of connections) if (kind === 'socket') sockets++
      return { sockets, streams: connections.size - sockets }
    },
    publish: (given) => {
      const committed = given.closings.length > 0 ? { ...given, at: db.clock.now() } : given
      safely(() => deliver(committed))
      safely(() => send(committed))
    },
    doubt,
    receive: (committed) => safely(() => deliver(committed, true)),
    listen: (hear) => {
      listeners.add(hear)
      return () => listeners.delete(hear)
    },
    check: async () => void (await check(connections)),
    catchUp,
    watch: () => {
      const timer = setInterval(check, checkMs, connections).unref()
      return () => {
        clearInterval(timer)
        clearTimeout(doubted)
      }
    },
    leave: () => {
      isLeaving = true
      for (const connection of [...connections]) leave(connection)
    },
    stay: () => {
      isLeaving = false
    },
  }
}

/**
 * True for a closing of all credentials of a type, or of an account. From another node it may arrive late, after a
 * newer credential has opened a socket (of an undeleted account, for example). Only the database can tell that
 * credential from those that ended.
 */
const isSweeping = (closing: Closing): boolean =>
  closing.kind === 'keeper' ||
  closing.kind === 'account' ||
  (closing.kind === 'credentials' && closing.ended.some(({ ids }) => ids === null))

/**
 * What a late signal means for a connection: the closings that certainly apply, and those that it hears if a sweeping
 * closing turns out not to have ended it, namely that another credential of the account ended.
 */
function parted(
  closings: readonly Closing[],
  connection: Connection,
): { closings: readonly Closing[]; ifSpared?: Closing[] } {
  const means = (one: Closing, verdict: string): boolean => verdictOf([one], connection) === verdict
  if (!closings.some((one) => isSweeping(one) && means(one, 'own'))) return { closings }
  return {
    closings: closings.filter((one) => !isSweeping(one) && !means(one, 'other')),
    ifSpared: closings.filter((one) => means(one, 'other')),
  }
}

/** The notifications by account, grouped once for all sockets. */
function byRecipient(
  notifications: readonly Notification[],
): (account_id: string) => readonly Notification[] {
  const accounts = Map.groupBy(notifications, ({ account_id }) => account_id)
  return (account_id) => accounts.get(account_id) ?? []
}

function concerns(closing: Closing, { account_id, actor_id, credential }: Connection): boolean {
  if (closing.kind === 'node') return false
  if (closing.kind === 'keeper') return credential.type === 'daemon_token'
  return closing.kind === 'actor' ? closing.actor_id === actor_id : closing.account_id === account_id
}

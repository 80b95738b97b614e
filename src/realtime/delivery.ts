import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../db/db.ts'
import type { Notification } from '../notifications.ts'
import type { Observer } from '../observe/observer.ts'
import { type Closing, type Committed, verdictOf } from './committed.ts'
import type { Connection } from './connection.ts'
import { createDoubts } from './doubts.ts'
import type { OpenConnections } from './open-connections.ts'

/** Time for a COMMIT to finish, or for the database to come back. */
export const doubtMs = 1_000

type DeliveryDeps = {
  db: Database
  observer: Observer
  connections: OpenConnections
  /** Closes those that lost their right; resolves to false if the database did not answer. */
  check(which: Iterable<Connection>): Promise<boolean>
  safely(act: () => void): void
}

/** Tells listeners everything, and each connection what concerns it. */
export function createDelivery({ db, observer, connections, check, safely }: DeliveryDeps) {
  const listeners = new Set<(committed: Committed) => void>()
  const doubts = createDoubts({ safely })

  /** `isLate`: from another node. */
  const deliver = (committed: Committed, isLate = false): void => {
    const doubtful = new Map<Connection, Closing[]>()
    for (const hear of listeners) safely(() => hear(committed))
    const notificationsOf = byRecipient(committed.notifications)
    for (const connection of connections.concernedBy(committed)) {
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
    while (!(await check([...doubtful.keys()].filter(connections.has))))
      await delay(doubtMs, undefined, { ref: false })
    for (const [connection, closings] of doubtful) {
      if (closings.length > 0 && connections.has(connection))
        safely(() => connection.hear({ ...committed, notifications: [], closings }))
      for (const unheard of doubts.end(connection))
        if (connections.has(connection)) safely(() => connection.hear(unheard))
    }
  }

  return {
    deliver,
    listen: (hear: (committed: Committed) => void): (() => void) => {
      listeners.add(hear)
      return () => listeners.delete(hear)
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

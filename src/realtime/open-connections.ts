import type { Committed } from './committed.ts'
import type { Connection } from './connection.ts'

export type OpenConnections = {
  readonly all: ReadonlySet<Connection>
  has(connection: Connection): boolean
  isFull(): boolean
  count(): { sockets: number; streams: number }
  /** Returns how to remove it; undefined if there are as many as there may be. */
  add(connection: Connection): (() => void) | undefined
  /** The connections that this may concern: a copy, since they may remove themselves while hearing it. */
  concernedBy(committed: Committed): Connection[]
}

type Options = {
  connectionsMax: number
  socketsPerAccount: number
  /** A newer socket of its account takes the place of this one. */
  displace(socket: Connection): void
}

/** The connections of this node, all and by account. */
export function createOpenConnections({
  connectionsMax,
  socketsPerAccount,
  displace,
}: Options): OpenConnections {
  const all = new Set<Connection>()
  const byAccount = new Map<string, Set<Connection>>()

  const add = (connection: Connection): (() => void) | undefined => {
    if (all.size >= connectionsMax) return undefined
    const { account_id, kind } = connection
    const own = byAccount.get(account_id) ?? new Set()
    byAccount.set(account_id, own)
    const [oldest, ...others] = [...own].filter((one) => one.kind === 'socket')
    if (kind === 'socket' && oldest && others.length + 1 >= socketsPerAccount) displace(oldest)
    all.add(connection)
    // The displaced socket may have been the last of the account and removed the set.
    byAccount.set(account_id, own.add(connection))
    return () => {
      all.delete(connection)
      own.delete(connection)
      if (own.size === 0 && byAccount.get(account_id) === own) byAccount.delete(account_id)
    }
  }
  return {
    all,
    has: (connection) => all.has(connection),
    isFull: () => all.size >= connectionsMax,
    count: () => {
      let sockets = 0
      for (const { kind } of all) if (kind === 'socket') sockets++
      return { sockets, streams: all.size - sockets }
    },
    add,
    // Most commits concern no connection and cost nothing here.
    concernedBy: ({ notifications, closings }) => {
      if (closings.some(({ kind }) => kind === 'actor' || kind === 'keeper')) return [...all]
      const accounts = new Set(notifications.map(({ account_id }) => account_id))
      for (const closing of closings) if ('account_id' in closing) accounts.add(closing.account_id)
      return [...accounts].flatMap((account_id) => [...(byAccount.get(account_id) ?? [])])
    },
  }
}

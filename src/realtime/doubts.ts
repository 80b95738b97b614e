import type { Committed } from './committed.ts'
import type { Connection } from './connection.ts'

/** Commits that wait for one connection; with more it is closed, and its client reconnects and reads anew. */
const unheardMax = 1000

type Doubt = { checks: number; unheard: Committed[] }

/**
 * Connections whose credential is being read again. Their notifications wait, because they may have lost the right to
 * them.
 */
export function createDoubts({ safely }: { safely(act: () => void): void }) {
  const doubts = new Map<Connection, Doubt>()
  return {
    begin: (connection: Connection): void => {
      const { checks, unheard } = doubts.get(connection) ?? { checks: 0, unheard: [] }
      doubts.set(connection, { checks: checks + 1, unheard })
    },
    /** True if the connection is in doubt; it then receives this later. */
    holds: (connection: Connection, committed: Committed): boolean => {
      const doubt = doubts.get(connection)
      if (!doubt) return false
      if (doubt.unheard.length < unheardMax) doubt.unheard.push(committed)
      else safely(() => connection.leave?.())
      return true
    },
    /** Ends one check; after the last one, returns what waited. */
    end: (connection: Connection): Committed[] => {
      const doubt = doubts.get(connection)
      if (!doubt || --doubt.checks > 0) return []
      doubts.delete(connection)
      return doubt.unheard
    },
  }
}

import type { Committed } from './committed.ts'
import type { Connection } from './connection.ts'

type Doubt = { checks: number; unheard: Committed[] }

/**
 * Connections whose credential is being read again. Their notifications wait, because they may have lost the right to
 * them.
 */
export function createDoubts() {
  const doubts = new Map<Connection, Doubt>()
  return {
    begin: (connection: Connection): void => {
      const { checks, unheard } = doubts.get(connection) ?? { checks: 0, unheard: [] }
      doubts.set(connection, { checks: checks + 1, unheard })
    },
    /** True if the connection is in doubt; it then receives this later. */
    holds: (connection: Connection, committed: Committed): boolean => {
      const doubt = doubts.get(connection)
      doubt?.unheard.push(committed)
      return doubt !== undefined
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

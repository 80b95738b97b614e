import type { Credential } from '../core/action.ts'
import type { Notification } from '../notifications.ts'
import type { Closing } from './closings.ts'

/** What one committed mutation means for live connections. */
export type Committed = {
  /** In the order of contract 3, section 7.3. */
  notifications: readonly Notification[]
  closings: readonly Closing[]
  /** Audit rows were written: followers of the log may have something to read. */
  wroteAudit: boolean
  /** The WebSocket call that caused it, if one did: its reply goes before anything here (contract 1, section 10, rule 6). */
  origin?: object | undefined
}

/** A WebSocket or an audit stream, as the hub sees it. */
export type Connection = {
  readonly kind: 'socket' | 'stream'
  readonly account_id: string
  readonly credential: Pick<Credential, 'type' | 'id' | 'expires_at'>
  /** Of a stream: the actor whose admin grant lets it read. */
  readonly actor_id: string | null
  /** What some node committed, reduced to what concerns this connection. */
  hear(committed: Committed): void
  /** The net found its credential, or the authority of a stream, gone; no signal had said so. */
  lost(reason: 'revoked' | 'expired' | 'role_lost'): void
}

/** Knows who is connected to this node, and tells them what any node committed. */
export type Hub = {
  /** Registers a connection; undefined where the process holds as many as it may. The answer takes it out again. */
  add(connection: Connection): (() => void) | undefined
  /** Called after the commit, in the order of the commits of this process; never throws. */
  publish(committed: Committed): void
  /** Hears everything that any node publishes. */
  listen(hear: (committed: Committed) => void): () => void
}

export function createHub(): Hub {
  const listeners = new Set<(committed: Committed) => void>()
  return {
    add: () => () => {},
    publish: (committed) => {
      for (const hear of listeners) hear(committed)
    },
    listen: (hear) => {
      listeners.add(hear)
      return () => listeners.delete(hear)
    },
  }
}

import type { Credential } from '../auth/identity.ts'
import type { Notification } from '../notifications.ts'
import type { Closing } from './closings.ts'

/** What one committed mutation means for live connections. */
export type Committed = {
  /** In the order of contract 3, section 7.3. */
  notifications: readonly Notification[]
  closings: readonly Closing[]
  /** Audit rows were written: followers of the log may have something to read. */
  wroteAudit: boolean
  /** Keys of `login_account` that each node forgets, where its limiters count in memory. */
  cleared?: readonly string[]
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
  /** The daemon token that opened it: rotated out, it leaves no trace in the database. */
  readonly daemon?: string | undefined
  /** What some node committed, reduced to what concerns this connection: its notifications, what may close it. */
  hear(committed: Committed): void
  /** Its credential expired, or the net found it, or the authority of a stream, gone; no signal had said so. */
  lost(reason: 'revoked' | 'expired' | 'role_lost'): void
  /** A newer socket of the account took its place. */
  displaced?(): void
  /** The process is going: finish what runs, then end. */
  leave?(): void
}

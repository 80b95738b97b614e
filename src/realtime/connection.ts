import type { Credential } from '../auth/identity.ts'
import type { Clock } from '../db/db.ts'
import type { Committed, Opened } from './committed.ts'

/** A WebSocket or an audit stream, as the hub sees it. */
export type Connection = {
  readonly kind: 'socket' | 'stream'
  readonly account_id: string
  readonly credential: Pick<Credential, 'type' | 'id' | 'expires_at'>
  /** For a stream: the actor whose admin grant allows it. */
  readonly actor_id: string | null
  /** The daemon token that opened it; the database does not show when it is rotated. */
  readonly daemon?: string | undefined
  /** Called when a node committed a change, with only the notifications and closings that concern this connection. */
  hear(committed: Committed): void
  /**
   * The credential was revoked or expired. `role_lost`: the admin grant of a stream is gone, or a role requires a stronger
   * credential.
   */
  lost(reason: 'revoked' | 'expired' | 'role_lost'): void
  /** A newer socket of the account replaced it. */
  displaced?(): void
  /** The process stops: finish running calls, then close. */
  leave?(): void
}

/** Whether both stand for the same credential of the same account. */
export const isSameCredential = (a: Opened, b: Opened): boolean =>
  a.account_id === b.account_id &&
  a.credential.type === b.credential.type &&
  a.credential.id === b.credential.id

export type Lost = Parameters<Connection['lost']>[0]

/** Only chooses the word in the close reason; the database has already decided that the credential ended. */
export const hasExpired = (
  { expires_at }: Pick<Credential, 'expires_at'>,
  { now }: Pick<Clock, 'now'>,
): boolean => expires_at !== null && Date.parse(expires_at) <= now()

/** Max delay of a Node timer; a longer one fires at once. */
const delayMaxMs = 2 ** 31 - 1

/** Runs `act` at a time of the database, however distant; the returned function cancels. Keeps no process alive. */
export function at(time: string, { now }: Pick<Clock, 'now'>, act: () => void): () => void {
  const due = Date.parse(time)
  let timer: NodeJS.Timeout
  const wait = (): void => {
    // Asked again when the timer fires: the clock of the database may have been set back meanwhile.
    const left = due - now()
    timer = setTimeout(() => (due > now() ? wait() : act()), Math.min(Math.max(left, 0), delayMaxMs)).unref()
  }
  wait()
  return () => clearTimeout(timer)
}

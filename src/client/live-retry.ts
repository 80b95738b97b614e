/** Why a live client stopped reconnecting. */
export type Ending =
  /** The credential is revoked, expired or invalid: log in again, then make a new client. */
  | 'signed_out'
  /** The account has too many sockets and this was the oldest. */
  | 'too_many_sockets'
  /** `close()` was called. */
  | 'closed'

/** Failed attempts since a connection last opened. */
export type Retry = { failures: number }

const endings: Record<number, Ending> = { 4001: 'signed_out', 4005: 'signed_out', 4004: 'too_many_sockets' }

/** The ending that a close code means; undefined if the client should reconnect. */
export const endingOf = (code: number): Ending | undefined => endings[code]

const slowest = 30_000

/** The wait before the next attempt: random, so that the clients of a node don't all reconnect at once. */
export function waitOf(code: number, { failures }: Retry): number {
  const isFirst = failures === 0
  // Another credential of the account was revoked. Reconnect soon: notifications are lost meanwhile.
  if (code === 4006 && isFirst) return Math.random() * 1_000
  // The node stopped or the connection died. Nothing is overloaded, but many clients may have lost it.
  if ((code === 1001 || code === 4003 || code === 4000) && isFirst) return Math.random() * 3_000
  return (0.5 + Math.random() / 2) * Math.min(slowest, 1_000 * 2 ** failures)
}

/** Why a live client connects no more: what a user must do, or that it was closed. */
export type Ending =
  /** The credential was revoked, has expired, or never counted: log in again, then make a new client. */
  | 'signed_out'
  /** The account has too many sockets and this was the oldest. */
  | 'too_many_sockets'
  /** `close()` was called. */
  | 'closed'

/** Attempts that failed since the last connection that opened. */
export type Retry = { failures: number }

const endings: Record<number, Ending> = { 4001: 'signed_out', 4005: 'signed_out', 4004: 'too_many_sockets' }

/** What a close code ends for good; undefined where the client connects again. */
export const endingOf = (code: number): Ending | undefined => endings[code]

const slowest = 30_000

/** How long to wait before the next attempt: at random, so that not all clients of a node come back at once. */
export function waitOf(code: number, { failures }: Retry): number {
  const isFirst = failures === 0
  // Another credential of the account was revoked: at once, as notifications are lost meanwhile.
  if (code === 4006 && isFirst) return Math.random() * 1_000
  // The node is going, or the line was dead: nothing is overloaded, only many clients may have lost it.
  if ((code === 1001 || code === 4003 || code === 4000) && isFirst) return Math.random() * 3_000
  return (0.5 + Math.random() / 2) * Math.min(slowest, 1_000 * 2 ** failures)
}

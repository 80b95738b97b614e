import type { Connection } from './client.ts'

/** Why a live client stopped reconnecting. */
export type Ending =
  /** The credential is revoked, expired or invalid: log in again, then make a new client. */
  | 'signed_out'
  /** The account has too many sockets and this was the oldest. */
  | 'too_many_sockets'
  /** `close()` was called. */
  | 'closed'
  /** The reason why the service refuses this socket, such as `actor_not_on_account` or `forbidden_origin`. */
  | (string & {})

/** Failed attempts since a connection last opened. */
export type Retry = { failures: number }

const endings: Record<number, Ending> = { 4001: 'signed_out', 4005: 'signed_out', 4004: 'too_many_sockets' }

/** The ending that a close code means; undefined if the client should reconnect. */
export const endingOf = (code: number): Ending | undefined => endings[code]

const slowest = 30_000

/** The wait before the next attempt: random, so that the clients of a node do not all reconnect at once. */
export function waitOf(code: number, { failures }: Retry): number {
  // After 4006 (another credential of the account was revoked) few clients reconnect, else perhaps all those of a node.
  if (!failures) return Math.random() * (code === 4006 ? 1_000 : 3_000)
  return (0.5 + Math.random() / 2) * Math.min(slowest, 1_000 * 2 ** failures)
}

const refusing = [400, 403, 404]
const answerMs = 10_000

/**
 * Why the service refuses a socket for good; undefined if it may open later. Few WebSocket classes report how an
 * upgrade was answered, so this sends ordinary requests. Only an answer of the service counts, not a page of a proxy.
 */
export async function refusalOf(
  { url, accountPath, fetch, headers }: Connection,
  wsPath: string,
  query: string,
): Promise<Ending | undefined> {
  for (const path of [`${accountPath}/status`, wsPath]) {
    try {
      const answer = await fetch(url + path + query, {
        credentials: 'include',
        redirect: 'manual',
        headers: headers(),
        signal: AbortSignal.timeout(answerMs),
      })
      const reply = (await answer.json()) as { error?: string; actor?: object | null }
      if (reply.error === 'authentication_required') return 'signed_out'
      if (reply.error && /^[a-z]\w*$/.test(reply.error) && refusing.includes(answer.status))
        return reply.error
      if (query && reply.actor === null) return 'actor_not_on_account'
    } catch {
      return undefined
    }
  }
  return undefined
}

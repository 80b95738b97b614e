import type { ErrorData } from '../errors.ts'
import type { Bound } from '../websocket/bound.ts'

/**
 * A request as the pipeline sees it, whether a Node server or a fetch handler received it: the raw path, header
 * names in lower case, and a body that is read only on demand.
 */
export type EdgeRequest = {
  readonly method: string
  /** As sent: not decoded, not normalised, without the query. */
  readonly path: string
  /** Without the leading `?`. */
  readonly query: string
  /** Repeated lines joined by `, ` (`; ` for Cookie). */
  header(name: string): string | undefined
  /** The address of the peer; undefined fails with `internal_error`. */
  readonly address: string | undefined
  /** False: there is no body, or it is declared as empty. */
  readonly hasBody: boolean
  /** The whole body; null as soon as it exceeds `limit` bytes. */
  body(limit: number, isKnown: IsKnown): Promise<Uint8Array | null>
  /** The client asks for another protocol on this connection. */
  readonly isUpgrade?: boolean
  /** True when the client has left and reads no answer. */
  isGone(): boolean
}

/** A longer body is read at once only if its sender has a valid credential. */
export const smallBody = 65_536

/** Asked once for a body that is not small: whether its sender has a valid credential. Rejects an invalid one. */
export type IsKnown = () => boolean | Promise<boolean>

export type EdgeReply = {
  status: number
  headers: Record<string, string>
  /** Null: no body and `Content-Length: 0`. Several texts are sent one after the other. */
  body: string | readonly string[] | StreamBody | null
  /** True: the connection ends with this reply, and the rest of the request is not read. */
  close?: boolean
  /** With status 101: the protocol that takes over the connection. */
  opens?: Bound
}

/** A body of unknown length, sent as it is produced and as fast as the client takes it. */
export type StreamBody = {
  /** Called once the head is written; never if the client has already left. */
  open(sink: Sink): void
  /** The sink can take more again. */
  drained(): void
  /** The connection has closed, from either side; nothing may be written any more. */
  gone(): void
}

/** The destination of a streamed body. */
export type Sink = {
  /** False: wait for `drained` before writing more. */
  write(chunk: Uint8Array): boolean
  end(): void
  /** Cuts the connection at once, even if the client does not read. */
  cut(): void
}

/** Headers of every private reply. */
const privateHeaders = {
  'cache-control': 'no-store',
  vary: 'Cookie, Authorization, Origin',
  'x-content-type-options': 'nosniff',
}

export const jsonReply = (
  status: number,
  body: string | readonly string[],
  headers?: Record<string, string>,
): EdgeReply => ({
  status,
  headers: { 'content-type': 'application/json', ...privateHeaders, ...headers },
  body,
})

/** A 200 without a body. */
export const emptyReply = (headers?: Record<string, string>): EdgeReply => ({
  status: 200,
  headers: { ...privateHeaders, ...headers },
  body: null,
})

/** The flat error body: for REST, and for requests refused before they reach a surface. */
export function flatReply(status: number, data: ErrorData, headers?: Record<string, string>): EdgeReply {
  const { reason, ...rest } = data
  const error = reason === 'rate_limited' ? 'rate_limit_exceeded' : reason
  return jsonReply(status, JSON.stringify({ error, ...rest }), { ...retryAfter(data), ...headers })
}

/** The `Retry-After` header, with the same number as the body. */
export const retryAfter = (data: ErrorData): Record<string, string> =>
  typeof data.retry_after === 'number' ? { 'retry-after': String(data.retry_after) } : {}

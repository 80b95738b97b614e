import type { ErrorData } from '../errors.ts'
import type { Bound } from '../websocket/bound.ts'

/**
 * The shape between the pipeline and what carries HTTP (a Node server, a fetch handler): the raw path,
 * headers in lower case, a body that is read only when asked for.
 */
export type EdgeRequest = {
  readonly method: string
  /** As sent: not decoded, not normalised, without the query. */
  readonly path: string
  /** Without the leading `?`. */
  readonly query: string
  /** Repeated lines joined by `, ` (`; ` for Cookie). */
  header(name: string): string | undefined
  /** The peer's address; undefined is refused with `internal_error`. */
  readonly address: string | undefined
  /** False: no body, or one declared as empty. */
  readonly hasBody: boolean
  /** The whole body; null as soon as it crosses `limit` bytes, or what `raise` makes of them. */
  body(limit: number, raise?: RaiseLimit): Promise<Uint8Array | null>
  /** The client asks for another protocol on this connection. */
  readonly isUpgrade?: boolean
  /** True when the client has left and reads no answer. */
  isGone(): boolean
}

/** Asked once, when a body is longer than the limit: what the limit is for this very sender. */
export type RaiseLimit = () => Promise<number>

export type EdgeReply = {
  status: number
  headers: Record<string, string>
  /** Null: no body and `Content-Length: 0`. Several texts go out one after the other. */
  body: string | readonly string[] | StreamBody | null
  /** The connection ends with this reply: the rest of the request is not read. */
  close?: boolean
  /** Of 101: what the connection becomes. */
  opens?: Bound
}

/** A body without a known end: it goes out as it comes, as fast as the client takes it. */
export type StreamBody = {
  /** The head is on its way. Called once, unless the client has left already. */
  open(sink: Sink): void
  /** The sink takes more again. */
  drained(): void
  /** The connection has ended, whoever ended it; nothing may be written any more. */
  gone(): void
}

/** Where a streamed body goes. */
export type Sink = {
  /** False: that was enough for now; `drained` follows. */
  write(chunk: Uint8Array): boolean
  end(): void
  /** Cuts the connection; a client that does not read keeps nothing open. */
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

/** 200 without a body. */
export const emptyReply = (headers?: Record<string, string>): EdgeReply => ({
  status: 200,
  headers: { ...privateHeaders, ...headers },
  body: null,
})

/** The flat body of REST and of everything refused before a surface is reached. */
export function flatReply(status: number, data: ErrorData, headers?: Record<string, string>): EdgeReply {
  const { reason, ...rest } = data
  const error = reason === 'rate_limited' ? 'rate_limit_exceeded' : reason
  return jsonReply(status, JSON.stringify({ error, ...rest }), { ...retryAfter(data), ...headers })
}

/** `Retry-After` with the same number as the body. */
export const retryAfter = (data: ErrorData): Record<string, string> =>
  typeof data.retry_after === 'number' ? { 'retry-after': String(data.retry_after) } : {}

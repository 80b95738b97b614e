import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { type ErrorData, refusal } from '../errors.ts'
import type { BuiltinReason } from '../reasons.ts'
import type { Bound } from '../websocket/bound.ts'
import { issue } from '../wire/issues.ts'

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
  body(limit: number, sender: Sender): Promise<Uint8Array | null>
  /** The client asks for another protocol on this connection. */
  readonly isUpgrade?: boolean
  /** True when the client has left and reads no answer. */
  isGone(): boolean
  /** True when the client sends nothing more; it has probably left. */
  hasEnded(): boolean
}

/** A longer body is read at once only if its sender has a valid credential. */
export const smallBody = 65_536

/** Who sends a body. */
export type Sender = {
  /** Of the client, not of a proxy before it. */
  ip: string
  /** Whether the sender has a valid credential, asked once, for a large body only. An invalid one is refused. */
  isKnown(): boolean | Promise<boolean>
}

/** A header that is sent in several lines, as cookies are, has a list. */
export type ReplyHeaders = Record<string, string | string[]>

export type EdgeReply = {
  status: number
  headers: ReplyHeaders
  /** Null: no body and `Content-Length: 0`. Several texts are sent one after the other. */
  body: string | readonly string[] | Uint8Array<ArrayBufferLike> | StreamBody | null
  /** True: the connection ends with this reply, and the rest of the request is not read. */
  close?: boolean
  /** True: part of an answer would be worse than none, so the connection is cut instead. */
  isCut?: boolean
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

export const isStream = (body: EdgeReply['body']): body is StreamBody =>
  typeof body === 'object' && body !== null && 'open' in body

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
  headers?: ReplyHeaders,
): EdgeReply => ({
  status,
  headers: { 'content-type': 'application/json', ...privateHeaders, ...headers },
  body,
})

/** A 200 without a body. */
export const emptyReply = (headers?: ReplyHeaders): EdgeReply => ({
  status: 200,
  headers: { ...privateHeaders, ...headers },
  body: null,
})

/** For a client that has left: nothing is sent. */
export const unreadReply = (): EdgeReply => ({ ...jsonReply(499, ''), isCut: true })

/** The flat error body: for REST, and for requests refused before they reach a surface. */
export function flatReply(status: number, data: ErrorData, headers?: ReplyHeaders): EdgeReply {
  const { reason, ...rest } = data
  const error = reason === 'rate_limited' ? 'rate_limit_exceeded' : reason
  return jsonReply(status, JSON.stringify({ error, ...rest }), { ...retryAfter(data), ...headers })
}

/** The flat error body of a refusal. */
export function refusalReply(reason: BuiltinReason, headers?: ReplyHeaders): EdgeReply {
  const { status, data } = refusal(reason)
  return flatReply(status, data, headers)
}

/** The `Retry-After` header: the seconds of the body, rounded up. What is no pause, such as -1 or NaN, makes none. */
export function retryAfter({ retry_after }: ErrorData): Record<string, string> {
  const seconds = typeof retry_after === 'number' && retry_after >= 0 ? Math.ceil(retry_after) : undefined
  return Number.isSafeInteger(seconds) ? { 'retry-after': String(seconds) } : {}
}

/** Whether an `If-None-Match` header names this ETag: the client has these bytes already. */
export const matchesEtag = (header: string | undefined, etag: string): boolean =>
  (header?.split(',') ?? []).some((one) => ['*', etag, `W/${etag}`].includes(one.trim()))

/** Headers that may be sent only once; if one is sent twice, both lines are ignored. */
const onceOnly = new Set(['authorization', 'x-daemon-token'])

/** Some versions of Node ignore further headers, even the `X-Forwarded-For` of a proxy; others refuse them. */
const headersMax = 1000

/**
 * Whether a proxy and a server may disagree about where the request ends or goes, as with two `Host` headers (request
 * smuggling), or about what it says.
 */
export function isMalformed({ httpVersion, headers, rawHeaders }: IncomingMessage): boolean {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return true
  if (rawHeaders.length > 2 * headersMax) return true
  const coding = headers['transfer-encoding']
  // Before version 1.1 there were no codings, so an old proxy would take the chunks for the next request.
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return true
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts > 1 || (hosts === 0 && httpVersion === '1.1')
}

/** The parts of a Node request that the edge reads before any body, as they were sent. */
export function requestHead(
  request: IncomingMessage,
): Pick<EdgeRequest, 'method' | 'path' | 'query' | 'header' | 'address' | 'isGone'> {
  const { headers, socket } = request
  return {
    method: request.method as string,
    ...pathAndQuery(request.url as string),
    header: (name) => {
      const value = headers[name] as string | undefined
      // Checked last, because `headersDistinct` makes Node process all headers of the request.
      const isTwice = () => (request.headersDistinct[name]?.length ?? 0) > 1
      return value !== undefined && onceOnly.has(name) && isTwice() ? undefined : value
    },
    address: socket.remoteAddress,
    // A connection that its client has reset has no remote address any more. One of a local socket has neither.
    isGone: () =>
      socket.destroyed || (socket.remoteAddress === undefined && socket.localAddress !== undefined),
  }
}

export function pathAndQuery(target: string): Pick<EdgeRequest, 'path' | 'query'> {
  const mark = target.indexOf('?')
  return mark < 0
    ? { path: target, query: '' }
    : { path: target.slice(0, mark), query: target.slice(mark + 1) }
}

/** Refuses the first key of a query that takes none. */
export function refuseQuery(query: URLSearchParams): void {
  const [unknown] = query.keys()
  if (unknown !== undefined)
    throw refusal('invalid_query_params', { issues: [issue([unknown], 'unrecognized_keys')] })
}

/** A mistake of the application: only the log reports it. */
export const alreadyRead = (): Error =>
  new Error(
    'The body was read before the service got the request: pass it on before any body parser reads it.',
  )

/**
 * Reads a JSON body as text: '' if there is no body, null if the bytes are not UTF-8. Refuses other media types,
 * other charsets and any content encoding.
 */
export async function readJsonText(
  request: EdgeRequest,
  limit: number,
  sender: Sender,
): Promise<string | null> {
  if (!request.hasBody) return ''
  refuseOtherTypes(request)
  const bytes = await request.body(limit, sender)
  if (bytes === null) throw refusal('payload_too_large')
  if (!isUtf8(bytes)) return null
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** Refuses a body that is not sent as JSON, whether it is read or not. */
export function refuseOtherTypes({ hasBody, header }: EdgeRequest): void {
  if (hasBody && !(isJsonType(header('content-type')) && isIdentity(header('content-encoding'))))
    throw refusal('unsupported_media_type')
}

function isJsonType(header: string | undefined): boolean {
  if (header === 'application/json') return true
  const [type, ...parameters] = (header ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  if (type !== 'application/json') return false
  return parameters.every(
    (parameter) => !/^charset\s*=/.test(parameter) || /^charset=("?)utf-8\1$/.test(parameter),
  )
}

const isIdentity = (header: string | undefined): boolean =>
  header === undefined || ['', 'identity'].includes(header.trim().toLowerCase())

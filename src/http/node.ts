import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Config } from '../config/config.ts'
import { settings } from '../config/table.ts'
import type { Service } from '../service.ts'
import { type Connection, Connections, lingerMs } from './connection.ts'
import {
  type EdgeReply,
  type EdgeRequest,
  isMalformed,
  requestHead,
  type StreamBody,
  smallBody,
} from './exchange.ts'
import { RequestBodies } from './request-body.ts'
import { smallAnswer } from './unsent.ts'

type Handle = (request: EdgeRequest) => Promise<EdgeReply>
type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void
type Listener = (request: IncomingMessage, response: ServerResponse) => void
type Limits = Pick<Config, 'unsent_max' | 'answer_stall_ms' | 'arriving_max'>

/** The adapter for a `node:http` server of your own; bounds the resources that one client can take. */
export const nodeListener = (handle: Handle, limits: Partial<Limits> = {}): Listener =>
  createListener(handle, {
    unsent_max: limits.unsent_max ?? (settings.unsent_max.default as () => number)(),
    answer_stall_ms: limits.answer_stall_ms ?? (settings.answer_stall_ms.default as number),
    arriving_max: limits.arriving_max ?? (settings.arriving_max.default as () => number)(),
  }).listener

/**
 * The edge gets path and headers as they were sent. A Request object would normalise the path, and creating one
 * costs a fifth of the throughput.
 */
function createListener(
  handle: Handle,
  limits: Limits,
  sendsContinue = false,
  other?: (request: IncomingMessage) => Listener | undefined,
) {
  const bodies = new RequestBodies(limits.arriving_max)
  const connections = new Connections(limits, (connection, request, response) => {
    const application = other?.(request)
    if (application) {
      if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
      return void application(request, response)
    }
    handle(edgeRequest(request, response, bodies, sendsContinue))
      .then((reply) => send(connection, request, response, reply))
      .catch(() => response.destroy())
  })
  const listener: Listener = (request, response) => {
    const connection = connections.of(request.socket)
    if (isMalformed(request) && !connection.isEnding) connection.endUnparsed(badRequest)
    else connection.take(request, response)
  }
  return { listener, connections, bodies }
}

/** How long a client may take nothing of its answer while the server stops. */
const stoppingStallMs = 1_000

export type ServerOptions = {
  /** Your application's listener, for paths that are not the service's. Default: the service answers 404. */
  request?: Listener
  /** For upgrades on your application's paths, such as WebSockets of its own. */
  upgrade?: Upgrade
}

/**
 * The server of `cellkeep start`, for an application with the service inside: `createServer(service, { request: app })`.
 * It has the limits and timeouts of the settings, and answers every request of a pipeline before an upgrade behind it.
 * Call `listen` yourself; to stop, `service.leave('draining')`, `server.close()` and `service.close()`.
 */
export const createServer = (
  { handle, upgrade, answers, app }: Pick<Service, 'handle' | 'upgrade' | 'answers' | 'app'>,
  options: ServerOptions = {},
): Server => createNodeServer(handle, app.config, upgrade, { ...options, answers }).server

export function createNodeServer(
  handle: Handle,
  config: Pick<Config, 'request_timeout_ms' | 'ws' | 'ws_path'> & Limits,
  upgrade: Upgrade,
  application: ServerOptions & Partial<Pick<Service, 'answers'>> = {},
): { server: Server; leave(): void; drain(): void } {
  const pathOf = ({ url = '' }: IncomingMessage): string => url.split('?', 1)[0] as string
  const isOwn = (request: IncomingMessage): boolean => application.answers?.(pathOf(request)) ?? true
  const { listener, connections, bodies } = createListener(
    handle,
    config,
    true,
    application.request && ((request) => (isOwn(request) ? undefined : application.request)),
  )
  const isSocketPath = (request: IncomingMessage): boolean => pathOf(request) === config.ws_path
  const server = createHttpServer(
    {
      // On other paths the upgrade is ignored and the request answered as usual. Node before 24.9 has no such option.
      shouldUpgradeCallback: (request) =>
        isSocketPath(request) ? config.ws : application.upgrade !== undefined && !isOwn(request),
      requestTimeout: config.request_timeout_ms,
      headersTimeout: Math.min(10_000, config.request_timeout_ms),
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 1_000,
      // Node itself would refuse a request without Host, but still handle the request behind it.
      requireHostHeader: false,
    },
    listener,
  )
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    connections.of(socket as Socket).endUnparsed(parserStatus[error.code ?? ''] ?? badRequest)
  })
  server.on('upgrade', (request, socket, head) => {
    const connection = connections.of(request.socket)
    // An answer still being written would end up among the frames.
    if (connection.isEnding || !connection.isIdle || isMalformed(request))
      return void connection.endUnparsed(badRequest)
    connections.release(request.socket)
    const mine = application.upgrade && !isOwn(request) ? application.upgrade : upgrade
    mine(request, socket, head)
  })
  // Without a listener Node would cut the connection without an answer.
  server.on('connect', (request) => connections.of(request.socket).endUnparsed(badRequest))
  // Node would send 100 even for a body that is refused unread, and an empty 417 for other expectations.
  for (const event of ['checkContinue', 'checkExpectation'])
    server.on(event, (request, response) => server.emit('request', request, response))
  return {
    server,
    leave: () => {
      connections.isLeaving = true
    },
    /** Stops waiting for clients that hold up the shutdown with an unfinished body or by not reading. */
    drain: () => {
      bodies.drain()
      connections.limits.answer_stall_ms = Math.min(stoppingStallMs, config.answer_stall_ms)
    },
  }
}

const badRequest = '400 Bad Request'
const parserStatus: Record<string, string> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** `sendsContinue`: a client may wait for `100 Continue` before it sends the body. */
function edgeRequest(
  request: IncomingMessage,
  response: ServerResponse,
  bodies: RequestBodies,
  sendsContinue: boolean,
): EdgeRequest {
  const { headers } = request
  return {
    ...requestHead(request),
    hasBody: headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0,
    body: (limit, isKnown) => {
      const awaitsContinue = sendsContinue && headers.expect !== undefined && request.httpVersion === '1.1'
      return bodies.read(request, limit, isKnown, awaitsContinue ? () => response.writeContinue() : undefined)
    },
    isGone: () => request.socket.destroyed,
  }
}

/** Writes the reply. Bytes that the client does not take count against its connection. */
export function send(
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  reply: EdgeReply,
): void {
  const { status, headers, body } = reply
  if (typeof body === 'object' && body !== null && 'open' in body)
    return void stream(connection, request, response, reply, body)
  if (response.destroyed) return
  const length = lengthOf(body)
  if (status !== 204 && status !== 304) headers['content-length'] = String(length)
  connection.handOver(response, length)
  if (!reply.close && !isLongUnread(request)) {
    if (connection.isLast) {
      headers.connection = 'close'
      connection.isEnding = true
    }
    response.writeHead(status, headers)
    if (length <= smallAnswer || request.method === 'HEAD' || body instanceof Uint8Array)
      response.end(oneText(body))
    else pour(response, typeof body === 'string' ? [body] : (body as readonly string[]))
    return
  }
  headers.connection = 'close'
  connection.isEnding = true
  connection.dropHeld()
  response.writeHead(status, headers)
  if (body === null || request.method === 'HEAD') response.flushHeaders()
  else response.write(oneText(body))
  if (request.complete || !connection.mayLinger) return void response.end()
  swallow(connection, request, response)
}

/** Whether a long rest of the body is unread; a chunked one may never end. */
const isLongUnread = ({ complete, headers }: IncomingMessage): boolean =>
  !complete &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > smallBody)

/** Discards the rest of the body for a while: cutting at once sends a reset, and many clients then lose the answer. */
function swallow(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
  const lingered = connection.linger()
  const end = (): void => {
    clearTimeout(timer)
    lingered()
    response.end()
  }
  const timer = setTimeout(end, lingerMs)
  request.once('end', end)
  request.once('close', end)
  request.resume()
}

type Body = Exclude<EdgeReply['body'], StreamBody>

function lengthOf(body: Body): number {
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.byteLength(body)
  return body?.reduce((sum, text) => sum + Buffer.byteLength(text), 0) ?? 0
}

const oneText = (body: Body): string | Uint8Array | null =>
  typeof body === 'string' || body === null || body instanceof Uint8Array ? body : body.join('')

/** How much is given to the kernel at a time, in UTF-16 units; a piece that it takes shows that the client reads. */
const pieceLength = 131_072

/** Writes a large body piece by piece, so that no more of it is encoded than the client takes. */
function pour(response: ServerResponse, texts: readonly string[]): void {
  const pieces = piecesOf(texts)
  const goOn = (): void => {
    while (!response.destroyed) {
      const { value, done } = pieces.next()
      if (done) return void response.end()
      if (!response.write(value)) return
    }
  }
  response.on('drain', goOn)
  goOn()
}

function* piecesOf(texts: readonly string[]): Generator<string> {
  for (const text of texts)
    for (let start = 0, end = 0; start < text.length; start = end) {
      end = start + pieceLength
      // A surrogate pair is one character.
      if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end += 1
      yield text.slice(start, end)
    }
}

/** Sends a stream. It has no time limit: the request timeout of the server covers the request only. */
function stream(
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers }: EdgeReply,
  body: StreamBody,
): void {
  if (response.destroyed) return void body.gone()
  connection.isStream = true
  response.writeHead(status, headers)
  response.on('close', () => {
    connection.isStream = false
    body.gone()
  })
  response.on('drain', body.drained)
  // An unread request body would block the parser, and we would not see the client disconnect.
  request.resume()
  body.open({
    // A write to a connection that has just closed would be an unhandled error.
    write: (chunk) => !response.destroyed && response.write(chunk),
    end: () => void response.end(),
    cut: () => void response.destroy(),
  })
}

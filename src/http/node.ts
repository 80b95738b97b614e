import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Config } from '../config/config.ts'
import { settings } from '../config/table.ts'
import type { App } from '../core/app.ts'
import type { Service } from '../service.ts'
import { Connections } from './connection.ts'
import { type EdgeReply, type EdgeRequest, isMalformed, requestHead } from './exchange.ts'
import { createServer as createHttpServer } from './node-http.ts'
import { RequestBodies } from './request-body.ts'
import { hasEnded, send } from './send.ts'

type Handle = (request: EdgeRequest) => Promise<EdgeReply>
type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void
type Listener = (request: IncomingMessage, response: ServerResponse) => void
type Limits = Pick<Config, 'unsent_max' | 'answer_stall_ms' | 'arriving_max'>

/** The adapter for a `node:http` server of your own; bounds the resources that one client can take. */
export function nodeListener(handle: Handle, limits: Partial<Limits> = {}): Listener {
  if (typeof handle !== 'function') throw new TypeError('nodeListener takes the function `service.handle`.')
  return createListener(handle, {
    unsent_max: limits.unsent_max ?? (settings.unsent_max.default as () => number)(),
    answer_stall_ms: limits.answer_stall_ms ?? (settings.answer_stall_ms.default as number),
    arriving_max: limits.arriving_max ?? (settings.arriving_max.default as () => number)(),
  }).listener
}

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
    // A request of `node:http2`: writing to its socket throws, which would end the process.
    if ('stream' in request) return void response.writeHead(505).end()
    const connection = connections.of(request.socket)
    if (isMalformed(request) && !connection.isEnding) connection.endUnparsed(badRequest)
    else connection.take(request, response)
    if (!offersUpgrade(request)) return
    // Node drops the bytes that arrived in the same read after a declined upgrade, and would parse later bytes as a
    // request.
    response.shouldKeepAlive = false
    connection.endsNext = true
  }
  return { listener, connections, bodies }
}

const offersUpgrade = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade !== undefined && /\bupgrade\b/i.test(headers.connection ?? '')

/** How long a client may take nothing of its answer while the server stops. */
const stoppingStallMs = 1_000

export type ServerOptions = {
  /** Your application's listener, for paths that are not the service's. Default: the service answers 404. */
  request?: Listener | undefined
  /** For upgrades on your application's paths, such as WebSockets of its own. */
  upgrade?: Upgrade | undefined
}

/**
 * The server of `cellkeep start`, for an application with the service inside: `createServer(service, { request: app
 * })`. It has the limits and timeouts of the settings, and answers all pipelined requests before an upgrade that
 * follows them. Call `listen` yourself; to stop, `service.leave('draining')`, `server.close()` and `service.close()`.
 */
export function createServer(
  { handle, upgrade, answers, app }: Pick<Service, 'handle' | 'upgrade' | 'answers' | 'app'>,
  options: ServerOptions = {},
): Server {
  if (typeof handle !== 'function')
    throw new TypeError('createServer takes a service: `createServer(await createService(…))`.')
  checkOptions(options)
  return createNodeServer(handle, app.config, upgrade, { ...options, answers, node: app.node }).server
}

/** Otherwise the first request of the application would end the process, or would not reach it. */
function checkOptions(options: ServerOptions): void {
  if (typeof options === 'function')
    throw new TypeError('createServer takes your application as `{ request: app }`.')
  for (const [key, value] of Object.entries(options))
    if (!['request', 'upgrade'].includes(key) || (value !== undefined && typeof value !== 'function'))
      throw new TypeError(`createServer takes the functions request and upgrade; "${key}" is none of them.`)
}

export function createNodeServer(
  handle: Handle,
  config: Pick<Config, 'request_timeout_ms' | 'ws' | 'ws_path'> & Limits,
  upgrade: Upgrade,
  application: ServerOptions & Partial<Pick<Service, 'answers'> & Pick<App, 'node'>> = {},
): { server: Server; leave(): void; drain(): void } {
  const pathOf = ({ url = '' }: IncomingMessage): string => url.split('?', 1)[0] as string
  const isOwn = (request: IncomingMessage): boolean => application.answers?.(pathOf(request)) ?? true
  const { listener, connections, bodies } = createListener(
    handle,
    config,
    true,
    application.request && ((request) => (isOwn(request) ? undefined : application.request)),
  )
  connections.isLeaving = () => application.node?.phase === 'draining'
  /** Other requests with an `Upgrade` header are answered as if they had none. */
  const takesUpgrade = (request: IncomingMessage): boolean =>
    pathOf(request) === config.ws_path ? config.ws : application.upgrade !== undefined && !isOwn(request)
  const server = createHttpServer(
    {
      // Node before 24.9 has no such option.
      shouldUpgradeCallback: takesUpgrade,
      requestTimeout: config.request_timeout_ms,
      headersTimeout: Math.min(10_000, config.request_timeout_ms),
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 1_000,
      // Node itself would refuse a request without Host, but still handle the request behind it.
      requireHostHeader: false,
    },
    listener,
  )
  // Clients may end their side once they have sent their requests; Node would then drop the answers under way.
  Object.assign(server, { httpAllowHalfOpen: true })
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
    if (!takesUpgrade(request)) return parseAnew(server, request, socket, head)
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
      connections.isLeaving = () => true
    },
    /** Stops waiting for clients that hold up the shutdown with an unfinished body or by not reading. */
    drain: () => {
      bodies.drain()
      connections.limits.answer_stall_ms = Math.min(stoppingStallMs, config.answer_stall_ms)
    },
  }
}

/**
 * Node has taken the connection out of HTTP. Gives the request back without its `Upgrade`; the answer closes the
 * connection.
 */
function parseAnew(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (!/^(connection|upgrade)$/i.test(rawHeaders[i] as string))
      lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  lines.push('Connection: close', '', '')
  socket.unshift(Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), head]))
  server.emit('connection', socket)
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
    body: (limit, sender) => {
      const awaitsContinue = sendsContinue && headers.expect !== undefined && request.httpVersion === '1.1'
      return bodies.read(request, limit, sender, awaitsContinue ? () => response.writeContinue() : undefined)
    },
    hasEnded: () => hasEnded(request.socket),
  }
}

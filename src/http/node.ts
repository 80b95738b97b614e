import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Config } from '../config.ts'
import { refusal } from '../errors.ts'
import type { EdgeReply, EdgeRequest, StreamBody } from './edge.ts'
import { requestHead } from './request-head.ts'

/** How long the rest of a refused body is swallowed, so that the client reads the answer before the cut. */
const lingerMs = 1_000

type Handle = (request: EdgeRequest) => Promise<EdgeReply>
type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Connections that end with an answer already given: what else comes on them is nobody's any more. */
const ending = new WeakSet<Duplex>()
/** Answers under way per connection, in the order of the requests. */
const underWay = new WeakMap<Duplex, Set<ServerResponse>>()
/** Requests whose client waits for `100 Continue` before it sends the body. */
const awaitsContinue = new WeakSet<IncomingMessage>()

/**
 * The Node adapter: raw path and headers go to the edge as they were sent. A Request object would
 * normalise the path, and making one costs a fifth of the throughput.
 */
export function nodeListener(handle: Handle): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    if (ending.has(request.socket)) return
    if (request.headers.host === undefined && request.httpVersion === '1.1')
      return endUnparsed(request.socket, badRequest)
    const responses = underWay.get(request.socket) ?? new Set()
    underWay.set(request.socket, responses.add(response))
    response.on('close', untrack)
    handle(edgeRequest(request, response))
      .then((reply) => send(request, response, reply))
      .catch(() => response.destroy())
  }
}

function untrack(this: ServerResponse): void {
  underWay.get(this.req.socket)?.delete(this)
}

export function createNodeServer(
  handle: Handle,
  config: Pick<Config, 'request_timeout_ms' | 'ws' | 'ws_path'>,
  upgrade: Upgrade,
): Server {
  const isSocketPath = ({ url }: IncomingMessage): boolean => url?.split('?', 1)[0] === config.ws_path
  const server = createServer(
    {
      // Elsewhere an offer to change the protocol is declined by an ordinary answer. Nodes before 24.9 do not ask.
      shouldUpgradeCallback: (request) => config.ws && isSocketPath(request),
      requestTimeout: config.request_timeout_ms,
      headersTimeout: Math.min(10_000, config.request_timeout_ms),
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 1_000,
      // Node would refuse a request without Host, and still carry out the one behind it.
      requireHostHeader: false,
    },
    nodeListener(handle),
  )
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    endUnparsed(socket, parserStatus[error.code ?? ''] ?? badRequest)
  })
  server.on('upgrade', (request, socket, head) => {
    // An answer still under way would land in the middle of the frames.
    const isBusy = ending.has(socket) || (underWay.get(socket)?.size ?? 0) > 0
    if (isBusy || request.headers.host === undefined) endUnparsed(socket, badRequest)
    else upgrade(request, socket, head)
  })
  // Without a listener Node would cut the connection and say nothing.
  server.on('connect', (_request, socket) => endUnparsed(socket, badRequest))
  // Node would say 100 to a body that is refused unread, and 417 with an empty body to other expectations.
  server.on('checkContinue', (request, response) => {
    awaitsContinue.add(request)
    server.emit('request', request, response)
  })
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  return server
}

const badRequest = '400 Bad Request'
const parserStatus: Record<string, string> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/**
 * Answers bytes that are no request and ends the connection. Requests before them keep their own answers:
 * a refusal written first would be taken for the answer of a mutation that was carried out.
 */
function endUnparsed(socket: Duplex, status: string): void {
  if (ending.has(socket)) return
  ending.add(socket)
  const responses = [...(underWay.get(socket) ?? [])]
  const broken = responses.find(({ req }) => !req.complete)
  const before = responses.filter((response) => response !== broken)
  const end = (): void => {
    if (!socket.writable || broken?.headersSent) return void socket.destroy()
    socket.end(
      `HTTP/1.1 ${status}\r\nX-Content-Type-Options: nosniff\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    )
    const cut = setTimeout(() => socket.destroy(), lingerMs)
    socket.resume().once('close', () => clearTimeout(cut))
  }
  const last = before.at(-1)
  if (last) last.once('close', end)
  else end()
}

function edgeRequest(request: IncomingMessage, response: ServerResponse): EdgeRequest {
  const { headers } = request
  return {
    ...requestHead(request),
    hasBody: headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0,
    body: (limit) => {
      if (awaitsContinue.has(request)) response.writeContinue()
      return readBody(request, limit)
    },
    isGone: () => request.socket.destroyed,
  }
}

function readBody(request: IncomingMessage, limit: number): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    // The client went away in the middle: nobody reads this answer.
    const gone = (): void => reject(refusal('invalid_json_body'))
    if (request.destroyed) return gone()
    const chunks: Buffer[] = []
    let size = 0
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size > limit) {
        request.off('data', onData)
        request.pause()
        resolve(null)
        return
      }
      chunks.push(chunk)
    }
    request.on('data', onData)
    request.on('end', () => {
      // Every request closes: a refusal made then, with its stack, would be a fifth of the request's work.
      request.off('close', gone)
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
    })
    request.on('close', gone)
  })
}

function send(request: IncomingMessage, response: ServerResponse, reply: EdgeReply): void {
  const { status, headers, body } = reply
  if (typeof body === 'object' && body !== null) {
    return void stream(request, response, reply, body)
  }
  if (response.destroyed) return
  if (status !== 204) headers['content-length'] = String(body === null ? 0 : Buffer.byteLength(body))
  // A chunked body that nobody read may have no end.
  const isEndless = !request.complete && request.headers['transfer-encoding'] !== undefined
  if (!reply.close && !isEndless) return void response.writeHead(status, headers).end(body)
  headers.connection = 'close'
  ending.add(request.socket)
  response.writeHead(status, headers)
  if (body === null || request.method === 'HEAD') response.flushHeaders()
  else response.write(body)
  // Cutting at once would send a reset, and many clients then never see the answer.
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, lingerMs)
  request.once('end', end)
  request.once('close', end)
  request.resume()
  if (request.complete) end()
}

/** Nothing here has a time limit: the server's own ends with the request, and a stream is as long as it is. */
function stream(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers }: EdgeReply,
  body: StreamBody,
): void {
  if (response.destroyed) return void body.gone()
  response.writeHead(status, headers)
  response.on('close', body.gone)
  response.on('drain', body.drained)
  // A body that nobody reads would hold up the parser, and with it the news that the client has left.
  request.resume()
  body.open({
    // A write that meets a connection just gone would be an error with nobody to hear it.
    write: (chunk) => !response.destroyed && response.write(chunk),
    end: () => void response.end(),
    cut: () => void response.destroy(),
  })
}

import { once } from 'node:events'
import { type Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'

/** What fetch would not allow: raw paths, any HTTP method, `Origin` and `Cookie`, repeated headers. */
export type Sent = {
  method?: string
  path: string
  headers?: OutgoingHttpHeaders
  /** A string is sent as it is, with `Content-Length`; anything else as JSON. */
  body?: unknown
  /** Keeps connections for the next requests. */
  agent?: Agent | undefined
}

export type Reply = {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The parsed body; undefined if there is none. */
  json: unknown
}

/** One request, on its own connection unless there is an agent. */
export async function send(url: string, sent: Sent): Promise<Reply> {
  const { method = 'GET', path, body, agent = false } = sent
  const payload = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const headers = {
    ...(payload !== undefined && { 'content-type': 'application/json' }),
    ...(payload !== undefined && { 'content-length': Buffer.byteLength(payload) }),
    ...sent.headers,
  }
  const outgoing = request(url, { method, path, headers, agent })
  // The server may stop reading a refused body; only the response counts.
  outgoing.on('error', () => {})
  outgoing.end(payload)
  const [response] = await once(outgoing, 'response')
  const received = await text(response)
  return {
    status: response.statusCode,
    headers: response.headers,
    text: received,
    json: received === '' ? undefined : JSON.parse(received),
  }
}

/** `POST /api/rpc` with a string as it is, or a value as JSON. */
export const rpc = (
  url: string,
  body: unknown,
  headers?: OutgoingHttpHeaders,
  agent?: Agent,
): Promise<Reply> => send(url, { method: 'POST', path: '/api/rpc', body, agent, ...(headers && { headers }) })

/** A JSON-RPC request object. */
export const call = (method: string, params?: unknown, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})

/** A raw connection. */
export async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Writes bytes on a raw connection; resolves to everything received when the server has closed it. */
export async function exchange(url: string, ...parts: (string | Buffer)[]): Promise<string> {
  const socket = await open(url)
  const closed = untilClosed(socket)
  for (const part of parts) socket.write(part)
  return await closed
}

/** Everything the server sends until the connection is closed. */
export async function untilClosed(socket: Socket): Promise<string> {
  let received = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    received += chunk
  })
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve))
  return received
}

/** The status lines in raw bytes, `100 Continue` included. */
export const statuses = (received: string): number[] =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

/** `error.data` of a JSON-RPC reply; undefined for a result. */
export const dataOf = ({ json }: Reply): Record<string, unknown> | undefined =>
  (json as { error?: { data: Record<string, unknown> } }).error?.data

/** The reason of a JSON-RPC reply, `ok` for a result. */
export const reasonOf = (reply: Reply): unknown => dataOf(reply)?.reason ?? 'ok'

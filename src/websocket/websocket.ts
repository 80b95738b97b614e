import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import type { App } from '../core/app.ts'
import { refusal } from '../errors.ts'
import { type EdgeReply, type EdgeRequest, flatReply, requestHead, smallBody } from '../http/exchange.ts'
import { STATUS_CODES } from '../http/node-http.ts'
import type { Bound } from './bound.ts'
import { Socket } from './socket.ts'

export type Sockets = {
  /** For `server.on('upgrade', …)`: opens a WebSocket or refuses with a full HTTP response. Never throws. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Resolves when no socket is open and no upgrade is in progress; `cut` destroys those left. */
  closed(cut: AbortSignal): Promise<void>
}

const messageMax = 1_048_576
/** Bytes, with frames and pongs, that may come before a message is complete, and how many more per millisecond. */
const unfinishedMax = 2 * messageMax
const idlePerMs = 0.25
const pingMs = 30_000
const closeMs = 5_000
/** How long input of a refused client is discarded, so that it can read the answer before the cut. */
const lingerMs = 1_000

/** The sockets of one service; `handle` is the HTTP edge, which checks an upgrade like any other request. */
export function createSockets(app: App, handle: (request: EdgeRequest) => Promise<EdgeReply>): Sockets {
  const options: ServerOptions & { closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageMax,
    closeTimeout: closeMs,
    // By default, ws accepts the first protocol that a client offers.
    handleProtocols: () => false,
  }
  const server = new WebSocketServer(options)
  /** The edge's headers for a 101, until ws writes it. */
  const extra = new WeakMap<IncomingMessage, EdgeReply['headers']>()
  server.on('headers', (lines, request) => {
    for (const [name, value] of Object.entries(extra.get(request) ?? {})) lines.push(`${name}: ${value}`)
  })
  // Without a listener, ws writes its own refusal; the edge has already checked the headers.
  server.on('wsClientError', (_error, socket) => socket.destroy())

  const open = new Set<Socket>()
  const raw = new Set<Duplex>()
  const idle: (() => void)[] = []
  let beats: NodeJS.Timeout | undefined

  /** Counts the connection until it closes, upgraded or not. */
  function track(socket: Duplex): void {
    raw.add(socket)
    beats ??= setInterval(() => {
      for (const one of open) one.beat()
    }, pingMs).unref()
    socket.once('close', () => {
      raw.delete(socket)
      if (raw.size > 0) return
      clearInterval(beats)
      beats = undefined
      for (const resolve of idle.splice(0)) resolve()
    })
  }

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const reply = await handle({
      ...requestHead(request),
      // HTTP/1.0 has no upgrades.
      isUpgrade: request.httpVersion === '1.1',
      ...bodyBehind(request, socket, head),
      isGone: () => socket.destroyed,
      hasEnded: () => socket.destroyed,
    })
    if (!reply.opens) return respond(socket, request.method as string, reply)
    if (app.hub.isFull()) return respond(socket, 'GET', busy())
    extra.set(request, reply.headers)
    const { opens } = reply
    server.handleUpgrade(request, socket, head, (ws) => {
      boundUnfinished(ws, socket)
      begin(ws, opens)
    })
  }

  function begin(ws: WebSocket, bound: Bound): void {
    let remove: (() => void) | undefined
    const socket = new Socket(app, ws, bound, () => {
      open.delete(socket)
      remove?.()
    })
    open.add(socket)
    remove = app.hub.add(socket.connection)
    // Registered first, then read again: a revocation before is found by `admit`, one after is signalled.
    void socket.admit()
  }

  return {
    upgrade: (request, socket, head) => {
      if (socket.destroyed) return
      // Without a listener, Node exits if the connection is lost during the check.
      socket.on('error', () => socket.destroy())
      track(socket)
      upgrade(request, socket, head).catch((error) => {
        app.log.error({ event: 'socket_failed', err: error }, 'an upgrade failed unexpectedly')
        socket.destroy()
      })
    },
    closed: async (cut) => {
      const done = new Promise<void>((resolve) => {
        if (raw.size === 0) resolve()
        else idle.push(resolve)
      })
      const cutAll = (): void => {
        for (const socket of raw) socket.destroy()
      }
      if (cut.aborted) cutAll()
      cut.addEventListener('abort', cutAll, { once: true })
      await done
      cut.removeEventListener('abort', cutAll)
    },
  }
}

function busy(): EdgeReply {
  const { status, data } = refusal('busy', { retry_after: 1 })
  return flatReply(status, data)
}

/** Cuts a client that goes on without completing a message: ws keeps all bytes that were read with each fragment. */
function boundUnfinished(ws: WebSocket, socket: Duplex): void {
  let [bytes, since] = [0, performance.now()]
  ws.on('message', () => {
    bytes = 0
    since = performance.now()
  })
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > unfinishedMax && bytes > unfinishedMax + (performance.now() - since) * idlePerMs)
      ws.terminate()
  })
}

/**
 * The body of an ordinary request that merely offers an upgrade, as some clients do with every request. Node
 * before 24.9 cannot be told to parse it. Only a declared `content-length` is supported.
 */
function bodyBehind(
  { headers }: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Pick<EdgeRequest, 'hasBody' | 'body'> {
  const length = Number(headers['content-length'] ?? 0)
  const body: EdgeRequest['body'] = async (limit, isKnown) => {
    // Nothing bounds how many of these arrive at once, so an anonymous one must be small.
    if (length > limit || (length > smallBody && !(await isKnown()))) return null
    return await rest()
  }
  const rest = (): Promise<Uint8Array> =>
    new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let size = 0
      const gone = (): void => reject(refusal('invalid_json_body'))
      const take = (chunk: Buffer): void => {
        chunks.push(chunk)
        size += chunk.length
        if (size < length) return
        socket.off('data', take).off('close', gone).pause()
        resolve(Buffer.concat(chunks).subarray(0, length))
      }
      socket.on('data', take).once('close', gone)
      take(head)
    })
  return { hasBody: length > 0, body }
}

/** Writes a reply to the raw connection, which the HTTP server has handed over, and closes it. */
function respond(socket: Duplex, method: string, { status, headers, body }: EdgeReply): void {
  if (!socket.writable) return void socket.destroy()
  const text = typeof body === 'string' ? body : ''
  const lines = { connection: 'close', ...headers, 'content-length': String(Buffer.byteLength(text)) }
  const head = Object.entries(lines)
    .flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}\r\n`))
    .join('')
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${method === 'HEAD' ? '' : text}`,
  )
  // An immediate cut would send a reset, and many clients would never see the answer.
  const cut = setTimeout(() => socket.destroy(), lingerMs)
  socket.resume().once('close', () => clearTimeout(cut))
}

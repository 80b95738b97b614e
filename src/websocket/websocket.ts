import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import type { App } from '../core/app.ts'
import { busy } from '../errors.ts'
import { type EdgeReply, type EdgeRequest, flatReply, requestHead } from '../http/exchange.ts'
import type { Bound } from './bound.ts'
import { bodyBehind, respond } from './declined.ts'
import { Socket } from './socket.ts'
import { messageMax, Unfinished } from './unfinished.ts'

type Sockets = {
  /** For `server.on('upgrade', …)`: opens a WebSocket or refuses with a full HTTP response. Never throws. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Resolves when no socket is open and no upgrade is in progress; `cut` destroys those left. */
  closed(cut: AbortSignal): Promise<void>
}

/** Max socket reads that a message may arrive in: each costs some hundred bytes of memory, however short it is. */
const readsMax = 8_192
const pingMs = 30_000
const closeMs = 5_000

/** The sockets of one service; `handle` is the HTTP edge, which checks an upgrade like any other request. */
export function createSockets(app: App, handle: (request: EdgeRequest) => Promise<EdgeReply>): Sockets {
  const options: ServerOptions & { closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageMax,
    maxBufferedChunks: readsMax,
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

  const unfinished = new Unfinished(app.config.arriving_max)
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
      ...bodyBehind(request, socket, head, app.config.request_timeout_ms),
      hasEnded: () => socket.destroyed,
    })
    const { opens, headers } = reply
    const { answer_stall_ms } = app.config
    if (!opens) return respond(request, socket, reply, answer_stall_ms)
    if (app.hub.isFull()) return respond(request, socket, busyReply(headers), answer_stall_ms)
    extra.set(request, headers)
    server.handleUpgrade(request, socket, head, (ws) => {
      unfinished.watch(ws, socket)
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

/** Takes the headers of the 101 that the edge has made. */
function busyReply(headers: EdgeReply['headers']): EdgeReply {
  const { status, data } = busy()
  const reply = flatReply(status, data)
  return { ...reply, headers: { ...reply.headers, ...headers } }
}

import type { z } from 'zod'
import type { Actions } from '../actions.ts'
import type { notifications } from '../notifications.ts'
import type { ConsumerNotifications } from '../wire/consumer.ts'
import {
  CellkeepError,
  type CommonReason,
  type ConnectionOptions,
  connectionOf,
  type Linked,
  link,
  type Methods,
  type Outcome,
  orThrow,
  type Tries,
  table,
} from './client.ts'
import { type Ending, endingOf, type Retry, refusalOf, waitOf } from './live-retry.ts'

export type { Ending } from './live-retry.ts'

/** Reasons that only a call over a socket has: two from the service, two from the client. */
export type LiveReason =
  | CommonReason
  | 'queue_overflow'
  | 'request_cancelled'
  /** The socket was lost after the call was sent and before its reply: it may or may not have been executed. */
  | 'connection_lost'
  /** Not sent: no connection within `patienceMs`, or the client is closed. */
  | 'not_connected'

/** Events of a live client: notifications of the account, including a consumer's, and changes of the connection. */
export type LiveEvents<N = ConsumerNotifications> = {
  [M in keyof typeof notifications]: z.output<(typeof notifications)[M]>
} & N & {
    /** Connected, or reconnected (`again`): notifications in between are lost, so reload lists. */
    open: { again: boolean }
    /** The connection was lost; the next attempt is in `wait_ms` milliseconds. */
    lost: { code: number; wait_ms: number }
    /** Closed for good: the client does not reconnect. */
    closed: Ending
  }

/** Typed calls and notifications over one WebSocket that reconnects automatically. */
export type LiveClient<A = Actions, N = ConsumerNotifications> = Methods<A, []> & {
  /** The same methods; they return a refusal as a value, with its reasons typed. */
  try: Tries<A, LiveReason, []>
  /** Calls `hear` on every such event; returns a function that removes the listener. */
  on<E extends keyof LiveEvents<N>>(event: E, hear: (params: LiveEvents<N>[E]) => void): () => void
  /** Closes the client for good; pending calls are rejected. */
  close(): void
}

export type LiveSettings = {
  wsPath?: string | undefined
  /** The acting actor of calls that name none. */
  acting?: string | undefined
  /** The WebSocket class, by default the global one. Where there is none, pass that of `ws`. */
  WebSocket?: (new (url: string, options?: never) => Socket) | undefined
  /** Milliseconds that a call waits for a connection; 10 s by default. */
  patienceMs?: number | undefined
}

/** For a live client on its own. Without the browser's cookie, its credential is in `headers` or `token`. */
export type LiveOptions = LiveSettings & ConnectionOptions

/** What all WebSocket classes have in common. */
export type Socket = {
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  send(text: string): void
  close(code?: number): void
}

type Waiting = {
  method: string
  /** The message without its id. */
  text: string
  /** Fires after `patienceMs`. */
  timer?: ReturnType<typeof setTimeout>
  settle(outcome: Outcome<unknown, string>): void
}
type Reply = {
  id?: number
  method?: string
  params?: unknown
  result?: unknown
  error?: { data: { reason: string } }
}

/** The calls of a live client over all its connections. */
function createCalls(patienceMs: number) {
  const sent = new Map<unknown, Waiting>()
  let unsent: Waiting[] = []
  let write: ((text: string) => void) | undefined
  let over: Ending | undefined
  let count = 0

  const reject = ({ method, settle, timer }: Waiting, reason: string, data: object): void => {
    clearTimeout(timer)
    settle({ ok: false, error: new CellkeepError(method, reason, 0, { reason, ...data }) })
  }
  const put = (one: Waiting): void => {
    clearTimeout(one.timer)
    const id = ++count
    sent.set(id, one)
    write?.(`{"jsonrpc":"2.0","id":${id},${one.text}`)
  }
  const attempt = (method: string, params?: unknown): Promise<Outcome<unknown, string>> =>
    new Promise((settle) => {
      // Made at once: a call that JSON cannot represent fails alone, and not when the connection opens.
      const text = JSON.stringify({ method, params }).slice(1)
      const one: Waiting = { method, text, settle }
      if (over) return reject(one, 'not_connected', { ending: over })
      if (write) return put(one)
      unsent.push(one)
      one.timer = setTimeout(
        () => {
          unsent = unsent.filter((other) => other !== one)
          reject(one, 'not_connected', {})
        },
        // A timer that is longer would fire at once.
        Math.min(patienceMs, 2e9),
      )
    })
  const opened = (to: (text: string) => void): void => {
    write = to
    for (const one of unsent.splice(0)) put(one)
  }
  const lost = (data: object): void => {
    write = undefined
    const all = [...sent.values()]
    sent.clear()
    for (const one of all) reject(one, 'connection_lost', data)
  }
  const ended = (ending: Ending): void => {
    over = ending
    for (const one of unsent.splice(0)) reject(one, 'not_connected', { ending })
    lost({ ending })
  }
  const answered = ({ id, result, error }: Reply): void => {
    const one = sent.get(id)
    sent.delete(id)
    if (error && one)
      one.settle({ ok: false, error: new CellkeepError(one.method, error.data.reason, 0, error.data) })
    else one?.settle({ ok: true, result })
  }
  return { attempt, opened, lost, ended, answered }
}

/** A socket with these headers; browsers take none, and send their own cookie. */
function openSocket(Class: SocketClass, address: string, headers: Record<string, string>): Socket {
  if (!Object.keys(headers).length) return new Class(address)
  try {
    return new Class(address, { headers })
  } catch {
    return new Class(address)
  }
}
type SocketClass = new (url: string, options?: object) => Socket

/**
 * How often the client sends a heartbeat. A connection that receives nothing, or does not open, within this time counts
 * as dead.
 */
const beatMs = 25_000

/**
 * Connects and stays connected, with the credential of a client: `const live = createLive(client)`,
 * `live.on('role_grant_offer_received', ({ offer }) => …)`, `await live.cell_get({ id })`. A call whose connection is
 * lost is rejected, never resent: only the caller knows whether it may run twice. `createLive<Actions & typeof mine,
 * NotificationsOf<typeof my_notifications>>(…)` types methods and notifications of your own.
 */
export function createLive<A = Actions, N = ConsumerNotifications>(
  client: Linked<A> | LiveOptions,
  given?: LiveSettings,
): LiveClient<A, N> {
  const to = connectionOf(client)
  const settings: LiveSettings = given ?? (link in client ? {} : client)
  const { wsPath = '/api/ws', acting, patienceMs = 10_000, WebSocket = globalThis.WebSocket } = settings
  const Class = WebSocket as SocketClass
  const query = acting === undefined ? '' : `?acting=${encodeURIComponent(acting)}`
  const address = to.url.replace(/^http/, 'ws') + wsPath + query
  const listeners = new Map<string, Set<(params: never) => void>>()
  const calls = createCalls(patienceMs)
  let socket: Socket | undefined
  let isOpen = false
  let wasOpen = false
  let over: Ending | undefined
  let retry: Retry = { failures: 0 }
  let timer: ReturnType<typeof setTimeout> | undefined
  let beat: ReturnType<typeof setTimeout> | undefined

  const emit = (event: string, params: unknown): void => {
    for (const hear of listeners.get(event) ?? []) hear(params as never)
  }
  const connect = (): void => {
    clearTimeout(timer)
    if (over || socket) return
    const own = openSocket(Class, address, to.headers())
    socket = own
    beat = setTimeout(() => lose(own, 4000), beatMs)
    own.onopen = () => {
      if (own !== socket) return own.close()
      clearTimeout(beat)
      isOpen = true
      retry = { failures: 0 }
      let heard = true
      own.onmessage = ({ data }: { data: unknown }) => {
        // The class of ws hands out messages even after `close`.
        if (own !== socket) return
        heard = true
        const message: Reply = JSON.parse(String(data))
        if (message.method !== undefined) emit(message.method, message.params)
        else calls.answered(message)
      }
      beat = setInterval(() => {
        if (!heard) return lose(own, 4000)
        heard = false
        own.send(`{"jsonrpc":"2.0","id":"beat","method":"heartbeat"}`)
      }, beatMs)
      calls.opened((text) => own.send(text))
      emit('open', { again: wasOpen })
      wasOpen = true
    }
    // The WebSocket of Node 22 emits only this event for a connection that it could not make.
    own.onerror = () => {
      if (!isOpen) void lose(own, 1006)
    }
    own.onclose = ({ code }: { code: number }) => lose(own, code)
  }

  /** Handles a connection that is lost or counts as lost; the code decides whether to reconnect. */
  const lose = async (own: Socket, code: number): Promise<void> => {
    if (own !== socket) return
    socket = undefined
    clearInterval(beat)
    const opened = isOpen
    isOpen = false
    own.close()
    calls.lost({ code })
    const ending = endingOf(code) ?? (opened ? undefined : await refusalOf(to, wsPath, query))
    if (over || socket) return
    if (ending) return end(ending)
    const wait_ms = waitOf(code, retry)
    retry.failures += 1
    timer = setTimeout(connect, wait_ms)
    emit('lost', { code, wait_ms })
  }
  const end = (ending: Ending): void => {
    over = ending
    page.removeEventListener?.('online', connect)
    clearTimeout(timer)
    clearInterval(beat)
    const last = socket
    socket = undefined
    isOpen = false
    calls.ended(ending)
    last?.close(1000)
    emit('closed', ending)
  }

  const on = (event: string, hear: (params: never) => void): (() => void) => {
    const all = listeners.get(event) ?? new Set()
    listeners.set(event, all.add(hear))
    return () => all.delete(hear)
  }
  connect()
  const page = globalThis as Partial<Pick<EventTarget, 'addEventListener' | 'removeEventListener'>>
  // Reconnect at once when the browser is back online; other runtimes have no such event.
  page.addEventListener?.('online', connect)
  const close = (): void => {
    if (!over) end('closed')
  }
  return table(orThrow(calls.attempt), { try: table(calls.attempt), on, close }) as LiveClient<A, N>
}

import type { z } from 'zod'
import type { Actions } from '../actions.ts'
import type { notifications } from '../notifications.ts'
import type { ConsumerNotifications } from '../wire/consumer.ts'
import { CellkeepError, type CommonReason, type Methods, type Outcome, type Tries, table } from './client.ts'
import { type Ending, endingOf, type Retry, waitOf } from './live-retry.ts'

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

/** Events of a live client: the notifications of the account, those of a consumer too, and changes of the connection. */
export type LiveEvents<N = ConsumerNotifications> = {
  [M in keyof typeof notifications]: z.output<(typeof notifications)[M]>
} & N & {
    /** Connected, or reconnected (`again`): notifications in between are lost, so reload lists. */
    open: { again: boolean }
    /** The connection was lost; the next attempt is in `wait_ms`. */
    lost: { code: number; wait_ms: number }
    /** Closed for good: the client does not reconnect. */
    closed: Ending
  }

/** Typed calls and notifications over one WebSocket that reconnects by itself. */
export type LiveClient<A = Actions, N = ConsumerNotifications> = Methods<A> & {
  /** The same methods; they return a refusal as a value, with its reasons typed. */
  try: Tries<A, LiveReason>
  /** Calls `hear` on every such event; returns a function that removes the listener. */
  on<E extends keyof LiveEvents<N>>(event: E, hear: (params: LiveEvents<N>[E]) => void): () => void
  /** Closes the client for good; pending calls are rejected. */
  close(): void
}

export type LiveOptions = {
  /** The base URL of the service, such as `http://localhost:4040`. */
  url: string
  wsPath?: string
  accountPath?: string
  /** The acting actor of calls that name none. */
  acting?: string
  /** Headers of the upgrade request. Node and `ws` support them, browsers don't. */
  headers?: Record<string, string>
  /** The WebSocket class, by default the global one. Where there is none, pass that of `ws`. */
  WebSocket?: new (
    url: string,
    options?: never,
  ) => Socket
  fetch?: typeof globalThis.fetch
  /** How long a call waits for a connection; 10 s by default. */
  patienceMs?: number
}

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
  params: unknown
  /** Runs out after `patienceMs`. */
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

/** How often the client sends a heartbeat. If nothing came since the last one, the connection counts as dead. */
const beatMs = 25_000

/**
 * Connects and stays connected: `const live = createLive({ url })`, `live.on('role_grant_offer_received',
 * ({ offer }) => …)`, `await live.cell_get({ id })`. A call whose connection is lost is rejected, never
 * resent: only the caller knows whether it may run twice. `createLive<Actions & typeof mine, NotificationsOf<typeof
 * my_notifications>>(…)` types methods and notifications of your own.
 */
export function createLive<A = Actions, N = ConsumerNotifications>(options: LiveOptions): LiveClient<A, N> {
  const {
    url,
    wsPath = '/api/ws',
    accountPath = '/api/account',
    acting,
    headers,
    patienceMs = 10_000,
  } = options
  const Class = (options.WebSocket ?? globalThis.WebSocket) as new (url: string, options?: object) => Socket
  const address = `${url.replace(/^http/, 'ws')}${wsPath}${acting === undefined ? '' : `?acting=${acting}`}`
  const listeners = new Map<string, Set<(params: never) => void>>()
  const sent = new Map<number, Waiting>()
  let unsent: Waiting[] = []
  let socket: Socket | undefined
  let isOpen = false
  let wasOpen = false
  let over: Ending | undefined
  let retry: Retry = { failures: 0 }
  let timer: ReturnType<typeof setTimeout> | undefined
  let beat: ReturnType<typeof setInterval> | undefined
  let count = 0

  const emit = (event: string, params: unknown): void => {
    for (const hear of listeners.get(event) ?? []) hear(params as never)
  }
  const reject = ({ settle, timer }: Waiting, reason: string, data: object): void => {
    clearTimeout(timer)
    settle({ ok: false, error: new CellkeepError(reason, 0, { reason, ...data }) })
  }

  const connect = (): void => {
    clearTimeout(timer)
    if (over || socket) return
    const own = headers ? new Class(address, { headers }) : new Class(address)
    socket = own
    own.onopen = () => {
      if (own !== socket) return own.close()
      isOpen = true
      retry = { failures: 0 }
      let heard = true
      own.onmessage = ({ data }: { data: unknown }) => {
        heard = true
        receive(JSON.parse(String(data)))
      }
      beat = setInterval(() => {
        if (!heard) return lose(own, 4000)
        heard = false
        own.send(`{"jsonrpc":"2.0","id":"beat","method":"heartbeat"}`)
      }, beatMs)
      for (const one of unsent.splice(0)) put(one)
      emit('open', { again: wasOpen })
      wasOpen = true
    }
    own.onerror = () => {}
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
    const lost = [...sent.values()]
    sent.clear()
    for (const one of lost) reject(one, 'connection_lost', { code })
    // Browsers hide why an upgrade was refused. If the credential is invalid, no retry helps.
    const ending = endingOf(code) ?? (opened || (await isSignedIn()) ? undefined : 'signed_out')
    if (over) return
    if (ending) return end(ending)
    const wait_ms = waitOf(code, retry)
    retry.failures += 1
    timer = setTimeout(connect, wait_ms)
    emit('lost', { code, wait_ms })
  }
  const isSignedIn = async (): Promise<boolean> => {
    try {
      const fetch = options.fetch ?? globalThis.fetch
      const answer = await fetch(`${url}${accountPath}/status`, {
        credentials: 'include',
        ...(headers && { headers }),
      })
      return answer.status !== 401
    } catch {
      // The network is down, which says nothing about the credential.
      return true
    }
  }
  const end = (ending: Ending): void => {
    over = ending
    clearTimeout(timer)
    clearInterval(beat)
    for (const one of unsent.splice(0)) reject(one, 'not_connected', { ending })
    const last = socket
    socket = undefined
    isOpen = false
    for (const one of sent.values()) reject(one, 'connection_lost', { ending })
    sent.clear()
    last?.close(1000)
    emit('closed', ending)
  }

  const put = (one: Waiting): void => {
    clearTimeout(one.timer)
    const id = ++count
    sent.set(id, one)
    socket?.send(JSON.stringify({ jsonrpc: '2.0', id, method: one.method, params: one.params }))
  }
  const receive = ({ id, method, params, result, error }: Reply): void => {
    if (method !== undefined) return void emit(method, params)
    const one = sent.get(id as number)
    sent.delete(id as number)
    if (error) one?.settle({ ok: false, error: new CellkeepError(error.data.reason, 0, error.data) })
    else one?.settle({ ok: true, result })
  }
  const attempt = (method: string, params?: unknown): Promise<Outcome<unknown, string>> =>
    new Promise((resolve) => {
      const one: Waiting = { method, params, settle: resolve }
      if (over) return reject(one, 'not_connected', { ending: over })
      if (isOpen) return put(one)
      unsent.push(one)
      one.timer = setTimeout(() => {
        unsent = unsent.filter((other) => other !== one)
        reject(one, 'not_connected', {})
      }, patienceMs)
    })
  const call = async (method: string, params?: unknown): Promise<unknown> => {
    const outcome = await attempt(method, params)
    if (outcome.ok) return outcome.result
    throw outcome.error
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
    page.removeEventListener?.('online', connect)
    if (!over) end('closed')
  }
  return table(call, { try: table(attempt), on, close }) as LiveClient<A, N>
}

import type { RawData, WebSocket } from 'ws'
import type { App } from '../core/app.ts'
import type { Message } from '../core/dispatch.ts'
import { refusal } from '../errors.ts'
import { type Envelope, type Id, type Origin, refused, run } from '../http/jsonrpc.ts'
import { smallAnswer } from '../http/unsent.ts'
import type { Notification } from '../notifications.ts'
import { verdictOf } from './closings.ts'
import { heartbeatIssue, readFrame } from './frames.ts'
import type { Committed, Connection } from './hub.ts'
import { LargeMessages } from './large-messages.ts'
import type { Bound } from './upgrade.ts'

const inFlightMax = 64
const bufferMax = 8 * 1_048_576
/** How long a lost credential waits for the replies of what runs; longer, and a slow call would keep the socket. */
const lastRepliesMs = 1_000

/** Why the server ends a socket (contract 1, section 11.3). */
const ends = {
  1001: 'shutting down',
  1011: 'internal error',
  1013: 'slow consumer',
  4001: 'revoked',
  4003: 'heartbeat timeout',
  4004: 'too many sockets',
  4005: 'credential expired',
  4006: 'credentials changed',
} as const
export type EndCode = keyof typeof ends

/** One request under way. */
type Call = Message & {
  id: Id
  state: 'waiting' | 'begun' | 'cancelled'
  /** What it caused on this very socket, which its reply precedes. */
  held: Committed[]
}

export type Socket = {
  readonly connection: Connection
  end(code: EndCode): void
  /**
   * Reads the credential again, now that no revocation can miss the socket (contract 1, section 11.1). Calls
   * wait for it.
   */
  admit(): Promise<void>
  /** Once per ping interval: closes what was silent for two of them, and pings the others. */
  beat(): void
}

/** One WebSocket after its upgrade; `onEnd` is called once, when it begins to close. */
export function openSocket(app: App, ws: WebSocket, bound: Bound, onEnd: () => void): Socket {
  const { config, log } = app
  const opened = performance.now()
  const byId = new Map<Id, Call>()
  const calls = new Set<Call>()
  let count = 0
  let isOver = false
  let ending: EndCode | undefined
  let isLeaving = false
  let silent = 0
  const large = new LargeMessages(ws, config)
  const admitted = Promise.withResolvers<void>()

  const end = (code: EndCode): void => {
    if (isOver) return
    over()
    ws.close(code, ends[code])
  }
  const over = (): void => {
    if (isOver) return
    isOver = true
    onEnd()
  }
  const send = (text: string | Uint8Array): void => {
    if (isOver) return
    if (ws.bufferedAmount > bufferMax) return void end(1013)
    if (text.length > smallAnswer) return void large.send(text)
    ws.send(text, { binary: false }, ignore)
  }

  /** Closes when nothing that has begun owes a reply. */
  const endAfterReplies = (code: EndCode): void => {
    if (ending !== undefined) return
    ending = code
    setTimeout(end, lastRepliesMs, code).unref()
    settle()
  }
  const settle = (): void => {
    const owed = [...calls].some(({ state }) => state === 'begun')
    if (ending !== undefined && !owed) end(ending)
    else if (isLeaving && calls.size === 0) end(1001)
  }
  const lostCode = (): EndCode => {
    const { expires_at } = bound.credential
    return expires_at !== null && Date.parse(expires_at) <= Date.now() ? 4005 : 4001
  }

  const hear = (committed: Committed): void => {
    const cause = committed.origin && [...calls].find((call) => call === committed.origin)
    if (cause) cause.held.push(committed)
    else apply(committed)
  }
  const apply = ({ notifications, closings }: Committed): void => {
    for (const notification of notifications) send(notificationFrame(notification))
    const verdict = verdictOf(closings, bound)
    if (verdict) end(verdict === 'own' ? 4001 : 4006)
  }

  const isOwn = (caller: Parameters<Message['admit']>[0]): boolean =>
    caller !== null &&
    caller.account.id === bound.account_id &&
    caller.credential.type === bound.credential.type &&
    caller.credential.id === bound.credential.id

  const newCall = (id: Id): Call & { isLost: boolean } => {
    const call = {
      id,
      state: 'waiting' as Call['state'],
      held: [],
      isLost: false,
      admit: (caller: Parameters<Message['admit']>[0]) => {
        if (isOwn(caller)) return
        call.isLost = true
        throw refusal('authentication_required')
      },
      begin: () => {
        if (call.state === 'cancelled') throw refusal('request_cancelled')
        call.state = 'begun'
      },
    }
    return call
  }

  async function serve(envelope: Envelope, mayHoldBadText: boolean): Promise<void> {
    const { carriers, ip } = bound
    const started = performance.now()
    const request_id = `${bound.request_id}.${++count}`
    const call = newCall(envelope.id)
    const trace: Origin['trace'] = {}
    byId.set(envelope.id, call)
    calls.add(call)
    await admitted.promise
    if (isOver) return void calls.delete(call)
    const { status, text } = await run(
      app,
      { carriers, ip, request_id, trace, message: call },
      { ...envelope, params: withActor(envelope) },
      { viaGet: false, mayHoldBadText },
    )
    logRequest(request_id, status, started, trace)
    calls.delete(call)
    if (call.state !== 'cancelled') answer(call, text)
    for (const committed of call.held) apply(committed)
    if (call.isLost) endAfterReplies(lostCode())
    settle()
  }
  const answer = (call: Call, text: string): void => {
    byId.delete(call.id)
    send(text)
  }
  /** The default actor stands in where the method takes one and the message names none. */
  const withActor = ({ method, params }: Envelope): unknown => {
    const takesActor = app.actions.get(method)?.auth.actor !== 'none'
    if (bound.actor_id === null || !takesActor || Object.hasOwn(params ?? {}, 'acting')) return params
    return { ...(params as object | undefined), acting: bound.actor_id }
  }
  const refuse = (id: Id, error: ReturnType<typeof refusal>): void => {
    const trace: Origin['trace'] = {}
    const { text, status } = refused({ trace }, id, error)
    send(text)
    logRequest(`${bound.request_id}.${++count}`, status, performance.now(), trace)
  }

  function receive(envelope: Envelope, mayHoldBadText: boolean): void {
    const { id, method, params } = envelope
    if (byId.has(id)) return void refuse(null, refusal('invalid_request', { detail: 'duplicate_id' }))
    if (method === 'heartbeat') {
      const wrong = heartbeatIssue(params)
      if (wrong) return void refuse(id, wrong)
      return void send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{}}`)
    }
    if (isLeaving) return void refuse(id, refusal('service_unavailable'))
    if (calls.size >= inFlightMax) return void refuse(id, refusal('queue_overflow'))
    serve(envelope, mayHoldBadText).catch(fail)
  }
  function cancel(request_id: string | number): void {
    const call = byId.get(request_id)
    if (call?.state !== 'waiting') return
    call.state = 'cancelled'
    answer(call, refused({ trace: {} }, call.id, refusal('request_cancelled')).text)
  }
  /** The boundary of everything that a message sets off. */
  const fail = (error: unknown): void => {
    log.error({ request_id: bound.request_id, err: error }, 'a message failed unexpectedly')
    end(1011)
  }

  const logRequest = (request_id: string, status: number, started: number, trace: Origin['trace']): void => {
    const duration_ms = tenths(performance.now() - started)
    const { ip } = bound
    log.info({ request_id, path: config.ws_path, status, duration_ms, ip, ...trace }, 'message')
  }

  ws.on('message', (data: RawData, isBinary: boolean) => {
    silent = 0
    if (isOver) return
    try {
      const frame = readFrame(isBinary ? null : String(data))
      if (frame.kind === 'request') receive(frame.envelope, frame.mayHoldBadText)
      else if (frame.kind === 'cancel') cancel(frame.request_id)
      else if (frame.kind === 'refused') refuse(frame.id, frame.error)
    } catch (error) {
      fail(error)
    }
  })
  for (const sign of ['ping', 'pong'] as const)
    ws.on(sign, () => {
      silent = 0
    })
  // Of a message too big or a broken frame; ws itself closes with the code that says so.
  ws.on('error', over)
  ws.on('close', (code: number) => {
    over()
    const { request_id, account_id } = bound
    log.info(
      { request_id, account_id, code, duration_ms: tenths(performance.now() - opened) },
      'socket closed',
    )
  })

  return {
    connection: {
      kind: 'socket',
      account_id: bound.account_id,
      credential: bound.credential,
      actor_id: null,
      hear,
      lost: (reason) => end(reason === 'expired' ? 4005 : 4001),
      displaced: () => end(4004),
      leave: () => {
        isLeaving = true
        settle()
      },
    },
    end,
    admit: async () => {
      try {
        const caller = await app.callers.read(bound.carriers, false, bound.ip)
        if (!isOwn(caller)) end(lostCode())
      } catch (error) {
        log.warn({ request_id: bound.request_id, err: error }, 'a socket could not be opened')
        end(1011)
      }
      admitted.resolve()
    },
    beat: () => {
      if (isOver) return
      if (silent++ >= 2) end(4003)
      else ws.ping(ignore)
    },
  }
}

const ignore = (): void => {}
const tenths = (ms: number): number => Math.round(ms * 10) / 10

/** Made once for all sockets that a notification goes to. */
const frames = new WeakMap<Notification, Uint8Array>()

function notificationFrame(notification: Notification): Uint8Array {
  const known = frames.get(notification)
  if (known) return known
  const { method, params } = notification
  const made = Buffer.from(JSON.stringify({ jsonrpc: '2.0', method, params }))
  frames.set(notification, made)
  return made
}

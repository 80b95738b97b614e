import type { RawData, WebSocket } from 'ws'
import type { Caller } from '../auth/caller.ts'
import type { App } from '../core/app.ts'
import { invalidRequest, refusal } from '../errors.ts'
import { answerCall, type Id, type RequestInfo, type RpcCall, refused } from '../http/jsonrpc.ts'
import { smallAnswer } from '../http/unsent.ts'
import { isHeardBy } from '../notifications.ts'
import { inWork } from '../observe/work.ts'
import { type Committed, verdictOf } from '../realtime/committed.ts'
import { type Connection, hasExpired } from '../realtime/connection.ts'
import { inOnePiece } from '../wire/json-text.ts'
import { Arrivals } from './arrivals.ts'
import { type Bound, InFlightRequest, isOwn } from './bound.ts'
import { type EndCode, ends } from './ends.ts'
import { heartbeatIssue, notificationFrame, readFrame, withActor } from './frames.ts'
import { LargeMessages } from './large-messages.ts'
import { MessageLog } from './message-log.ts'
import { Vetting } from './vetting.ts'

const inFlightMax = 64
/** With more UTF-16 units of calls in flight, the socket is not read: 64 large ones would be a lot of memory and work. */
const inFlightSize = 1_048_576
const bufferMax = 8 * 1_048_576
/** How long a socket with a lost credential waits for running calls; a slow call must not keep it open. */
const lastRepliesMs = 1_000

/** One WebSocket after its upgrade; `onEnd` is called once, when closing starts. */
export class Socket {
  readonly connection: Connection
  readonly #app: App
  readonly #ws: WebSocket
  readonly #bound: Bound
  readonly #onEnd: () => void
  readonly #log: MessageLog
  readonly #calls = new Set<InFlightRequest>()
  readonly #byId = new Map<Id, InFlightRequest>()
  readonly #admitted = Promise.withResolvers<void>()
  readonly #large: LargeMessages
  readonly #vetting: Vetting
  #size = 0
  #isOver = false
  #ending: EndCode | undefined
  /** What this node closed it with; a client that was cut never confirms it. */
  #ended: EndCode | undefined
  #isLeaving = false
  #silent = 0

  constructor(app: App, ws: WebSocket, bound: Bound, onEnd: () => void) {
    this.#app = app
    this.#ws = ws
    this.#bound = bound
    this.#onEnd = onEnd
    this.#log = new MessageLog(app, bound)
    this.#large = new LargeMessages(ws, app.config)
    this.#vetting = new Vetting(
      async () => (await this.#read())?.must_enrol === false,
      (notification) => this.#send(notificationFrame(notification)),
      (error) => (error === undefined ? this.#end(1013) : this.#fail(error)),
    )
    this.connection = {
      kind: 'socket',
      account_id: bound.account_id,
      credential: bound.credential,
      daemon: bound.credential.type === 'daemon_token' ? bound.carriers.daemon : undefined,
      actor_id: null,
      hear: (committed) => this.#hear(committed),
      lost: (reason) => {
        if (reason === 'role_lost') this.#vetting.doubt()
        else this.#end(reason === 'expired' ? 4005 : 4001)
      },
      displaced: () => this.#end(4004),
      leave: () => {
        this.#isLeaving = true
        this.#settle()
      },
    }
    const arrivals = new Arrivals(
      bound.account_id,
      (size) => this.#weigh(size),
      (text) => this.#handle(text),
    )
    ws.on('message', (data: RawData, isBinary: boolean) => arrivals.add(isBinary ? null : String(data)))
    for (const sign of ['message', 'ping', 'pong'] as const)
      ws.on(sign, () => {
        this.#silent = 0
      })
    // An oversized message or a broken frame; ws closes with the matching code itself.
    ws.on('error', () => this.#over())
    ws.on('close', (code: number) => {
      this.#over()
      this.#log.closed(this.#ended ?? code)
    })
  }

  /**
   * Reads the credential again and closes the socket if it is gone. The socket is registered by now, so it hears of
   * every later revocation. Calls wait for this.
   */
  async admit(): Promise<void> {
    try {
      const caller = await this.#read()
      if (!isOwn(caller, this.#bound)) this.#end(this.#lostCode())
      if (caller?.must_enrol) this.#vetting.doubt()
    } catch (error) {
      this.#log.notOpened(error)
      this.#end(1011)
    }
    this.#admitted.resolve()
  }

  #read(): Promise<Caller | null> {
    const { carriers, ip } = this.#bound
    return this.#app.callers.read({ carriers, withActors: false, ip })
  }

  /** Called once per ping interval: closes the socket after two silent intervals, else pings it. */
  beat(): void {
    if (this.#isOver || this.#ws.isPaused) return
    if (this.#silent++ >= 2) this.#end(4003)
    else this.#ws.ping(ignore)
  }

  #handle(text: string | null): void {
    if (this.#isOver) return
    try {
      const frame = readFrame(text)
      if (frame.kind === 'request') this.#receive(frame.call, frame.mayHoldBadText, text?.length ?? 0)
      else if (frame.kind === 'cancel') this.#cancel(frame.request_id)
      else if (frame.kind === 'refused') this.#refuse(frame.id, frame.error)
    } catch (error) {
      this.#fail(error)
    }
  }

  #receive(rpc: RpcCall, mayHoldBadText: boolean, size: number): void {
    const { id, method, params } = rpc
    if (this.#byId.has(id)) return void this.#refuse(null, invalidRequest('duplicate_id'))
    if (method === 'heartbeat') {
      const wrong = heartbeatIssue(params)
      if (wrong) return void this.#refuse(id, wrong)
      return void this.#send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{}}`)
    }
    if (this.#isLeaving) return void this.#refuse(id, refusal('service_unavailable'))
    if (this.#calls.size >= inFlightMax) return void this.#refuse(id, refusal('queue_overflow'))
    this.#weigh(size)
    this.#serve(rpc, mayHoldBadText)
      .catch((error) => this.#fail(error))
      .finally(() => this.#weigh(-size))
  }

  #weigh(size: number): void {
    this.#size += size
    if (this.#size > inFlightSize && !this.#isOver) this.#ws.pause()
    else if (this.#ws.isPaused) this.#ws.resume()
  }

  async #serve(rpc: RpcCall, mayHoldBadText: boolean): Promise<void> {
    const { carriers, ip } = this.#bound
    const began = performance.now()
    const request_id = this.#log.nextId()
    const call = new InFlightRequest(rpc.id, this.#bound)
    const trace: RequestInfo['trace'] = {}
    this.#byId.set(rpc.id, call)
    this.#calls.add(call)
    await this.#admitted.promise
    if (this.#isOver) return void this.#calls.delete(call)
    const info = { carriers, ip, request_id, trace, message: call }
    const { status, text } = await inWork({ site: 'ws', fields: trace }, () =>
      answerCall(
        this.#app,
        info,
        { ...rpc, params: withActor(this.#app, this.#bound, rpc) },
        { viaGet: false, mayHoldBadText, surface: 'ws' },
      ),
    )
    this.#log.answered(request_id, status, began, trace)
    this.#calls.delete(call)
    if (call.state !== 'cancelled') this.#answer(call, inOnePiece(text))
    for (const committed of call.held) this.#apply(committed)
    if (call.isLost) this.#endAfterReplies(this.#lostCode())
    this.#settle()
  }

  #cancel(request_id: string | number): void {
    const call = this.#byId.get(request_id)
    if (call?.state !== 'waiting') return
    call.state = 'cancelled'
    this.#answer(call, refused({ trace: {} }, call.id, refusal('request_cancelled')).text)
  }

  #refuse(id: Id, error: ReturnType<typeof refusal>): void {
    const trace: RequestInfo['trace'] = {}
    const { text, status } = refused({ trace }, id, error)
    this.#send(text)
    this.#log.answered(this.#log.nextId(), status, performance.now(), trace)
  }

  #answer(call: InFlightRequest, text: string): void {
    this.#byId.delete(call.id)
    this.#send(text)
  }

  #send(text: string | Uint8Array): void {
    if (this.#isOver) return
    const { bufferedAmount } = this.#ws
    if (bufferedAmount > bufferMax) return void this.#end(1013)
    if (Math.max(bufferedAmount, text.length) > smallAnswer) return void this.#large.send(text)
    this.#ws.send(text, { binary: false }, ignore)
  }

  /** Holds back what a call of this socket caused until the call is answered. */
  #hear(committed: Committed): void {
    const { origin } = committed
    if (origin instanceof InFlightRequest && this.#calls.has(origin)) origin.held.push(committed)
    else this.#apply(committed)
  }

  #apply({ notifications, closings }: Committed): void {
    const { scope, strong } = this.#bound.credential
    // The role may require a stronger credential than this one.
    const mayBeWeak = !strong && this.#app.config.require_second_factor.length > 0
    if (mayBeWeak && closings.some(({ kind }) => kind === 'role')) this.#vetting.doubt()
    for (const notification of notifications)
      if (isHeardBy(scope, notification.method)) this.#vetting.pass(notification)
    const verdict = verdictOf(closings, this.#bound)
    if (verdict) this.#end(verdict === 'own' ? 4001 : 4006)
  }

  #lostCode(): EndCode {
    return hasExpired(this.#bound.credential, this.#app.db.clock) ? 4005 : 4001
  }

  /** Closes once every call that has begun is answered. */
  #endAfterReplies(code: EndCode): void {
    if (this.#ending !== undefined) return
    this.#ending = code
    setTimeout(() => this.#end(code), lastRepliesMs).unref()
    this.#settle()
  }

  #settle(): void {
    const owed = [...this.#calls].some(({ state }) => state === 'begun')
    if (this.#ending !== undefined && !owed) this.#end(this.#ending)
    else if (this.#isLeaving && this.#calls.size === 0) this.#end(1001)
  }

  #end(code: EndCode): void {
    if (this.#isOver) return
    this.#ended = code
    this.#over(ends[code].replace(' ', '_'))
    this.#ws.close(code, ends[code])
  }

  #over(reason = 'client_left'): void {
    if (this.#isOver) return
    this.#isOver = true
    // The socket must be read to receive the client's half of the closing handshake.
    this.#ws.resume()
    this.#app.observer.count('live_closed_total', 'socket', reason)
    this.#onEnd()
  }

  /** The error boundary of all message handling. */
  #fail(error: unknown): void {
    this.#log.failed(error)
    this.#end(1011)
  }
}

const ignore = (): void => {}

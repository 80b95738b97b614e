import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { smallBody } from './exchange.ts'
import { type AnswerLimits, type Holder, unsent } from './unsent.ts'

/** How long the rest of a refused body is discarded, so that the client can read the answer before the cut. */
export const lingerMs = 1_000

/** Max running requests per connection; further ones wait, and the socket is not read. */
const runningMax = 12
/** From this many requests running on all connections, each connection may run only one. */
const crowd = 64
/** Max waiting requests of all connections: one read of 64 KiB may bring two thousand of them. */
const waitingMax = 2_048
/** Max connections whose refused body is being discarded; further ones are cut at once. */
export const lingeringMax = 16
/** Answers up to this size are not counted; the number of running requests bounds them. */
const tinyAnswer = 4_096
/** A connection with more unsent bytes starts no further request. */
const unsentMax = 1_048_576

/** Leaves a large body in the kernel until something reads it, which makes Node resume the socket. */
function keepUnread(request: IncomingMessage): void {
  if (!request.readableFlowing && !request.complete) request.socket.pause()
}

type Start = (connection: Connection, request: IncomingMessage, response: ServerResponse) => void

/** The connections of one listener. */
export class Connections {
  running = 0
  waiting = 0
  lingering = 0
  /** The server will stop soon: clients should open new connections, which reach another node. */
  isLeaving: () => boolean = () => false
  readonly limits: { -readonly [K in keyof AnswerLimits]: AnswerLimits[K] }
  readonly start: Start
  readonly #open = new Map<Socket, Connection>()

  constructor(limits: AnswerLimits, start: Start) {
    this.limits = { ...limits }
    this.start = start
  }

  of(socket: Socket): Connection {
    const known = this.#open.get(socket)
    if (known) return known
    const connection = new Connection(this, socket)
    this.#open.set(socket, connection)
    unsent.watch(connection)
    socket.once('close', () => this.release(socket))
    return connection
  }

  /** The connection has closed, or has left HTTP. */
  release(socket: Socket): void {
    const connection = this.#open.get(socket)
    if (!connection) return
    this.#open.delete(socket)
    unsent.unwatch(connection)
    connection.forget()
  }
}

/** One client: its requests in order, and the answers it has not yet read. */
export class Connection implements Holder {
  unsent = 0
  readonly isPatient = false
  readonly graceMs = 1_000
  /** True: it closes after an answer already given; anything else that arrives on it is ignored. */
  isEnding = false
  /** True: it closes after the answer to the latest request. */
  endsNext = false
  #stream: ServerResponse | undefined
  readonly #all: Connections
  readonly #socket: Socket
  /** Responses not yet settled, in the order of the requests, each with the bytes handed over. */
  readonly #owed = new Map<ServerResponse, number>()
  #waiting: [IncomingMessage, ServerResponse][] = []
  #isPaused = false
  #isPausing = false
  #next: NodeJS.Immediate | undefined
  #isQuiet = false
  #taken = -1
  #takenAt = 0

  constructor(all: Connections, socket: Socket) {
    this.#all = all
    this.#socket = socket
  }

  get limits(): AnswerLimits {
    return this.#all.limits
  }
  get isIdle(): boolean {
    return this.#owed.size === 0
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    // Its answer would be held until the stream ends, which may be never.
    if (this.#isStream) return void this.cut()
    this.isEnding ||= this.endsNext
    // Node buffers ignored requests until the connection closes, so the socket must not be read any more.
    if (this.isEnding) return void this.#pause()
    const begins = this.isIdle || (this.#waiting.length === 0 && this.#hasRoom())
    this.#owed.set(response, 0)
    response.on('close', () => this.#settle(response))
    if (begins) this.#begin(request, response)
    else this.#enqueue(request, response)
  }

  /** The answer is being sent; its bytes count as unsent until the kernel has all of them. */
  handOver(response: ServerResponse, bytes: number): void {
    if (bytes <= tinyAnswer || !this.#owed.has(response)) return
    this.#owed.set(response, bytes)
    this.unsent += bytes
    unsent.bytes += bytes
  }

  /** The response becomes a stream; false, and the connection is cut, if requests are behind it. */
  beginStream(response: ServerResponse): boolean {
    const isLatest = [...this.#owed.keys()].at(-1) === response
    if (isLatest) this.#stream = response
    else this.cut()
    return isLatest
  }

  get #isStream(): boolean {
    return this.#stream !== undefined && this.#owed.has(this.#stream)
  }

  /** Drops everything that the connection still had to send. */
  forget(): void {
    this.#all.running -= this.#owed.size - this.#waiting.length
    this.dropWaiting()
    this.#owed.clear()
    unsent.bytes -= this.unsent
    this.unsent = 0
  }

  /** Drops the requests behind an answer that ends the connection. */
  dropWaiting(): void {
    this.#all.waiting -= this.#waiting.length
    for (const [, response] of this.#waiting) this.#owed.delete(response)
    this.#waiting = []
  }

  /** The answer to its only request may be the last of the connection. */
  get isLast(): boolean {
    return this.#all.isLeaving() && this.#owed.size === 1
  }

  get mayLinger(): boolean {
    return this.#all.lingering < lingeringMax
  }

  /** Counts this connection as lingering until the returned function is called. */
  linger(): () => void {
    this.#all.lingering += 1
    let isOver = false
    return () => {
      if (!isOver) this.#all.lingering -= 1
      isOver = true
    }
  }

  stuckMs(now: number): number {
    const { writableLength } = this.#socket
    // A stream handles clients that do not read itself, unless it waits behind other answers.
    const isStream = this.#isStream && this.#owed.size === 1
    const taken = isStream || writableLength === 0 ? -1 : this.#socket.bytesWritten - writableLength
    if (taken !== this.#taken) {
      this.#taken = taken
      this.#takenAt = now
    }
    return taken < 0 ? 0 : now - this.#takenAt
  }

  cut(): void {
    this.isEnding = true
    this.#socket.destroy()
  }

  /**
   * Answers bytes that are not a request and ends the connection. Requests before them get their own answers first:
   * otherwise the client would mistake this refusal for the answer to a mutation that was carried out.
   */
  endUnparsed(status: string): void {
    if (this.isEnding) return
    this.isEnding = true
    const socket = this.#socket
    const responses = [...this.#owed.keys()]
    const broken = responses.find(({ req }) => !req.complete)
    const end = (): void => {
      if (!socket.writable || broken?.headersSent) return void socket.destroy()
      socket.end(
        `HTTP/1.1 ${status}\r\nX-Request-Id: ${randomUUID()}\r\nX-Content-Type-Options: nosniff\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
      )
      const cut = setTimeout(() => socket.destroy(), lingerMs)
      socket.resume().once('close', () => clearTimeout(cut))
    }
    const last = responses.filter((response) => response !== broken).at(-1)
    if (last) last.once('close', end)
    else end()
  }

  /** The response has been sent, or never will be. */
  #settle(response: ServerResponse): void {
    const bytes = this.#owed.get(response)
    if (bytes === undefined) return
    this.#owed.delete(response)
    this.unsent -= bytes
    unsent.bytes -= bytes
    this.#all.running -= 1
    if (this.#waiting.length > 0) this.#next ??= setImmediate(() => this.#goOn())
    // Node would keep the idle connection open until its keep-alive timeout, and `server.close()` waits for that.
    else if (this.isIdle && this.#all.isLeaving()) this.#socket.destroySoon()
  }

  #hasRoom(): boolean {
    const running = this.#owed.size - this.#waiting.length
    return running < (this.#all.running < crowd ? runningMax : 1) && this.unsent < unsentMax
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    this.#all.running += 1
    if (Number(request.headers['content-length'] ?? 0) > smallBody) process.nextTick(keepUnread, request)
    this.#all.start(this, request, response)
  }

  #enqueue(request: IncomingMessage, response: ServerResponse): void {
    if (!this.#isQuiet) this.#quiet()
    this.#waiting.push([request, response])
    this.#all.waiting += 1
    if (this.#all.waiting > waitingMax && this.#waiting.length > runningMax) return void this.cut()
    this.#pause()
  }

  #pause(): void {
    if (this.#isPausing) return
    this.#isPausing = true
    // Deferred: Node resumes reading once it has parsed this message.
    process.nextTick(() => {
      this.#isPausing = false
      if (this.#waiting.length === 0 && !this.isEnding) return
      this.#isPaused = true
      this.#socket.pause()
    })
  }

  /**
   * When a connection closes, Node creates an error for each of its requests; collecting stack traces would be most of
   * the cost.
   */
  #quiet(): void {
    this.#isQuiet = true
    const { stackTraceLimit } = Error
    this.#socket.prependOnceListener('close', () => {
      Error.stackTraceLimit = 0
    })
    this.#socket.once('close', () => {
      Error.stackTraceLimit = stackTraceLimit
    })
  }

  /** In a turn of its own: answers that need no database would all be given in one. */
  #goOn(): void {
    this.#next = undefined
    // Nobody would read the answers of a closed connection, so its waiting requests are not started.
    if (this.#socket.destroyed) return
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      const [request, response] = this.#waiting.shift() as [IncomingMessage, ServerResponse]
      this.#all.waiting -= 1
      this.#begin(request, response)
    }
    if (this.#waiting.length > 0 || this.isEnding || !this.#isPaused) return
    this.#isPaused = false
    this.#socket.resume()
  }
}

import type { IncomingMessage } from 'node:http'
import { busy, refusal, type ServiceError } from '../errors.ts'
import { createFairQueue } from '../limits/fair-queue.ts'
import { inTurn } from '../limits/in-turn.ts'
import { crowdOf } from '../limits/limiters.ts'
import { alreadyRead, type Sender, smallBody } from './exchange.ts'

/** Large bodies of anonymous senders that are read at the same time; others wait, unread, for their turn. */
const largeAtOnce = 4
const largeWaiting = 64
/** After this long a large anonymous body gives way if others wait. */
const turnMs = 1_000

/**
 * The request bodies that are still arriving, oldest first. Together they hold no more than `max` bytes: the
 * oldest is refused first, because an honest client finishes its body soon.
 */
export class RequestBodies {
  readonly #max: number
  readonly #arriving = new Set<Arriving>()
  readonly #large = createFairQueue(largeAtOnce, largeAtOnce + largeWaiting)
  #held = 0
  #isDraining = false

  constructor(max: number) {
    this.#max = max
  }

  /** The whole body; null as soon as it exceeds the limit. `ready` is called before it is read. */
  read(
    request: IncomingMessage,
    limit: number,
    sender: Sender,
    ready?: () => void,
  ): Promise<Uint8Array | null> {
    if (this.#isDraining && !request.complete) return Promise.reject(refusal('shutting_down'))
    if (request.readableEnded) return Promise.reject(alreadyRead())
    // The client disconnected in the middle of its body; nobody reads this answer.
    if (request.destroyed) return Promise.reject(refusal('invalid_json_body'))
    return new Promise((resolve, reject) => {
      const body = new Arriving(this, request, limit, sender, resolve, reject, ready)
      this.#arriving.add(body)
      if (Number(request.headers['content-length'] ?? 0) > smallBody) void this.admit(body)
      else body.flow()
    })
  }

  /** Lets a large body flow: at once if its sender is known, else in turn with bodies from other networks. */
  async admit(body: Arriving): Promise<void> {
    body.isAdmitted = true
    try {
      if (await body.sender.isKnown()) return body.flow()
      await this.#large.run(body.crowd, () => body.flowInTurn(() => this.#large.size > largeAtOnce))
    } catch (error) {
      body.refuse(error as ServiceError)
    }
  }

  /** Refuses the bodies that are still arriving, and all later ones that have not fully arrived. */
  drain(): void {
    this.#isDraining = true
    for (const body of this.#arriving) if (!body.hasArrived) body.refuse(refusal('shutting_down'))
  }

  grown(bytes: number): void {
    this.#held += bytes
    if (this.#held <= this.#max) return
    for (const body of this.#arriving) {
      if (body.held > 0) body.refuse(busy())
      if (this.#held <= this.#max) return
    }
  }

  ended(body: Arriving): void {
    this.#arriving.delete(body)
    this.#held -= body.held
  }
}

const empty = Buffer.alloc(0)

class Arriving {
  /** Bytes of memory that this body uses. */
  held = 0
  isAdmitted = false
  hasArrived = false
  readonly sender: Sender
  readonly #all: RequestBodies
  readonly #request: IncomingMessage
  readonly #resolve: (bytes: Uint8Array | null) => void
  readonly #reject: (error: ServiceError) => void
  readonly #limit: number
  readonly #ready: (() => void) | undefined
  /** The first chunk; then a buffer with room to grow, because a list of chunks costs some hundred bytes for each. */
  #bytes: Buffer = empty
  #size = 0
  #isFlowing = false
  #isOver = false
  #onEnd: (() => void) | undefined

  constructor(
    all: RequestBodies,
    request: IncomingMessage,
    limit: number,
    sender: Sender,
    resolve: (bytes: Uint8Array | null) => void,
    reject: (error: ServiceError) => void,
    ready: (() => void) | undefined,
  ) {
    this.#all = all
    this.#request = request
    this.#limit = limit
    this.sender = sender
    this.#resolve = resolve
    this.#reject = reject
    this.#ready = ready
    request.on('end', () => {
      this.hasArrived = true
      this.#endTurn()
      if (this.#size > smallBody) inTurn(this.crowd, () => this.#finish())
      else this.#finish()
    })
    // Every request emits close; creating an error with its stack each time would cost a fifth of the work.
    request.on('close', () => this.#isOver || this.hasArrived || this.refuse(refusal('invalid_json_body')))
  }

  /** Senders of one network share a turn. */
  get crowd(): string {
    return crowdOf(this.sender.ip)
  }

  flow(): void {
    if (this.#isOver) return
    if (this.#isFlowing) return void this.#request.resume()
    this.#isFlowing = true
    this.#ready?.()
    this.#request.on('data', (chunk: Buffer) => this.#take(chunk))
  }

  /** Resolves when the body has ended; a body that takes long while others wait is refused. */
  flowInTurn(othersWait: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isOver) return resolve()
      const turns = setInterval(() => othersWait() && this.refuse(busy()), turnMs)
      this.#onEnd = () => {
        clearInterval(turns)
        resolve()
      }
      this.flow()
    })
  }

  refuse(error: ServiceError): void {
    if (!this.#end()) return
    this.#request.pause()
    this.#reject(error)
  }

  #finish(): void {
    const [bytes, size] = [this.#bytes, this.#size]
    if (this.#end()) this.#resolve(bytes.length === size ? bytes : bytes.subarray(0, size))
  }

  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#all.ended(this)
    this.#bytes = empty
    this.#endTurn()
    return true
  }

  /** Lets the next large body flow. */
  #endTurn(): void {
    this.#onEnd?.()
    this.#onEnd = undefined
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return
    const size = this.#size + chunk.length
    if (size > this.#limit) return void this.#tooLarge()
    const before = this.held
    if (this.#size === 0) {
      this.#bytes = chunk
      this.held = chunk.length
    } else {
      if (size > this.#bytes.length) this.#grow(size)
      chunk.copy(this.#bytes, this.#size)
    }
    this.#size = size
    if (this.held > before) this.#all.grown(this.held - before)
    if (size <= smallBody || this.isAdmitted) return
    this.#request.pause()
    void this.#all.admit(this)
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(size, Math.min(2 * size, this.#limit)))
    this.#bytes.copy(larger, 0, 0, this.#size)
    this.#bytes = larger
    this.held = larger.length
  }

  #tooLarge(): void {
    if (!this.#end()) return
    this.#request.pause()
    this.#resolve(null)
  }
}

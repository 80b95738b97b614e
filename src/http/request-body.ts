import type { IncomingMessage } from 'node:http'
import { refusal, type ServiceError } from '../errors.ts'
import type { RaiseLimit } from './exchange.ts'

/**
 * The request bodies that are still arriving, oldest first. Together they hold no more than `max` bytes: the
 * oldest is refused first, because an honest client finishes its body soon.
 */
export class RequestBodies {
  readonly #max: number
  readonly #arriving = new Set<Arriving>()
  #held = 0
  #isDraining = false

  constructor(max: number) {
    this.#max = max
  }

  /** The whole body; null as soon as it exceeds the limit. */
  read(request: IncomingMessage, limit: number, raise?: RaiseLimit): Promise<Uint8Array | null> {
    if (this.#isDraining && !request.complete) return Promise.reject(refusal('shutting_down'))
    // The client disconnected in the middle of its body; nobody reads this answer.
    if (request.destroyed) return Promise.reject(refusal('invalid_json_body'))
    return new Promise((resolve, reject) => {
      this.#arriving.add(new Arriving(this, request, limit, raise, resolve, reject))
    })
  }

  /** Refuses the bodies that are still arriving, and all later ones that have not fully arrived. */
  drain(): void {
    this.#isDraining = true
    for (const body of this.#arriving) body.refuse(refusal('shutting_down'))
  }

  grown(bytes: number): void {
    this.#held += bytes
    if (this.#held <= this.#max) return
    for (const body of this.#arriving) {
      if (body.held > 0) body.refuse(refusal('busy', { retry_after: 1 }))
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
  /** Bytes of memory that it uses. */
  held = 0
  readonly #all: RequestBodies
  readonly #request: IncomingMessage
  readonly #resolve: (bytes: Uint8Array | null) => void
  readonly #reject: (error: ServiceError) => void
  #limit: number
  #raise: RaiseLimit | undefined
  /** The first chunk; then a buffer with room to grow, because a list of chunks costs some hundred bytes for each. */
  #bytes: Buffer = empty
  #size = 0
  #isOver = false

  constructor(
    all: RequestBodies,
    request: IncomingMessage,
    limit: number,
    raise: RaiseLimit | undefined,
    resolve: (bytes: Uint8Array | null) => void,
    reject: (error: ServiceError) => void,
  ) {
    this.#all = all
    this.#request = request
    this.#limit = limit
    this.#raise = raise
    this.#resolve = resolve
    this.#reject = reject
    request.on('data', (chunk: Buffer) => this.#take(chunk))
    request.on('end', () => this.#finish())
    // Every request emits close; creating an error with its stack each time would cost a fifth of the work.
    request.on('close', () => this.#isOver || this.refuse(refusal('invalid_json_body')))
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
    return true
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return
    const size = this.#size + chunk.length
    if (size > this.#limit && !this.#raise) return void this.#tooLarge()
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
    if (size > this.#limit && this.#raise) void this.#ask(this.#raise)
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

  async #ask(raise: RaiseLimit): Promise<void> {
    this.#raise = undefined
    this.#request.pause()
    try {
      this.#limit = await raise()
    } catch (error) {
      return this.refuse(error as ServiceError)
    }
    if (this.#size > this.#limit) this.#tooLarge()
    else if (!this.#isOver) this.#request.resume()
  }
}

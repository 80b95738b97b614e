import { constants, openSync, write, writeSync } from 'node:fs'
import { isatty } from 'node:tty'

/** In bytes; a busy server fills it in a few seconds. */
const heldMax = 4 * 1024 * 1024
/** Lines are gathered, because one write per line would cost a tenth of the throughput. */
const gather = { length: 65_536, ms: 500 }
/** The wait between attempts to write to a full pipe; it doubles up to `max`. */
const retryMs = { first: 1, max: 50 }
const farewellMs = 500

/**
 * The output of a log. Writing never blocks: if the reader is slow, lines are buffered up to a limit, then dropped
 * and counted.
 */
export class Output {
  readonly #fd: number
  readonly #onRoom: (dropped: number) => void
  #lines: string[] = []
  /** The total length of the buffered lines. */
  #held = 0
  /** What is being written, and whether a write is pending in the system. */
  #chunk: Buffer | undefined
  #isPending = false
  #retryAfter = retryMs.first
  #dropped = 0
  #isMuted = false
  /** During a flush, lines are written at once instead of gathered. */
  #isHurried = false
  #timer: NodeJS.Timeout | undefined
  #idle = Promise.withResolvers<void>()

  /** Once the output takes lines again, `onRoom` is called with the number of lines dropped. */
  constructor(fd: number, onRoom: (dropped: number) => void = () => {}) {
    this.#fd = fd
    this.#onRoom = onRoom
  }

  write(line: string): void {
    if (this.#isMuted) return
    // Counting bytes joins the parts of the text too; held apart they would take five times the memory.
    const length = Buffer.byteLength(line)
    // Until the loss is reported, later lines are dropped too, so that the report stands where lines are missing.
    if (this.#dropped > 0 || this.#held + (this.#chunk?.length ?? 0) + length > heldMax) {
      this.#dropped += 1
      return
    }
    this.#lines.push(line)
    this.#held += length
    if (this.#chunk) return
    if (this.#held >= gather.length) this.#next()
    else this.#arm()
  }

  /** Resolves when every line is written, or after `limitMs`. */
  async flush(limitMs: number): Promise<void> {
    if (this.#isMuted || (!this.#chunk && this.#held === 0)) return
    this.#isHurried = true
    if (!this.#chunk) this.#next()
    const limit = Promise.withResolvers<void>()
    const expired = setTimeout(limit.resolve, limitMs)
    await Promise.race([this.#idle.promise, limit.promise])
    clearTimeout(expired)
    this.#isHurried = false
  }

  /** For the exit of the process: writes what it can within half a second. */
  flushSync(): void {
    // A pending write may or may not succeed; leave its chunk out rather than write it twice.
    const begun = this.#isPending ? undefined : this.#chunk
    let rest = Buffer.concat([begun ?? Buffer.alloc(0), Buffer.from(this.#lines.join(''))])
    const until = performance.now() + farewellMs
    while (rest.length > 0 && !this.#isMuted && performance.now() < until) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') break
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
      }
    }
    this.mute()
  }

  /** Lines dropped since the last report. */
  dropped(): number {
    return this.#dropped
  }

  /** Drops everything from now on without counting it. */
  mute(): void {
    this.#isMuted = true
    clearTimeout(this.#timer)
    this.#lines = []
    this.#held = 0
    this.#chunk = undefined
    this.#idle.resolve()
  }

  /** Waits for further lines before the next chunk. */
  #arm(): void {
    this.#timer ??= setTimeout(() => this.#next(), gather.ms).unref()
  }

  /** Makes a chunk of the lines and writes it. */
  #next(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#chunk = Buffer.from(this.#lines.join(''))
    this.#lines = []
    this.#held = 0
    this.#put()
  }

  #put(): void {
    this.#isPending = true
    write(this.#fd, this.#chunk as Buffer, (error, count) => {
      this.#isPending = false
      if (this.#isMuted) return
      if (error) this.#failed(error)
      else this.#advance(count)
    })
  }

  #advance(count: number): void {
    this.#retryAfter = retryMs.first
    this.#chunk = this.#chunk?.subarray(count)
    if (this.#chunk && this.#chunk.length > 0) {
      this.#put()
      return
    }
    // While the chunk is still set, so that the line of the report is gathered and not written on its own.
    const dropped = this.#dropped
    this.#dropped = 0
    if (dropped > 0) this.#onRoom(dropped)
    this.#chunk = undefined
    if (this.#held >= (this.#isHurried ? 1 : gather.length)) this.#next()
    else if (this.#held > 0) this.#arm()
    else {
      this.#idle.resolve()
      this.#idle = Promise.withResolvers()
    }
  }

  #failed({ code }: NodeJS.ErrnoException): void {
    // The reader is gone for good; a closed terminal gives EIO.
    if (code === 'EPIPE' || code === 'EIO' || code === 'EBADF') {
      this.mute()
      return
    }
    // A pipe is full until it is read, a disk until space is freed.
    setTimeout(() => this.#isMuted || this.#put(), code === 'EAGAIN' ? this.#retryAfter : 1000).unref()
    this.#retryAfter = Math.min(this.#retryAfter * 2, retryMs.max)
  }
}

/**
 * A non-blocking descriptor of standard output: a blocked write would hold a thread that the exit of the process
 * waits for. Accessing `process.stdout` makes a pipe non-blocking. A terminal, which Ctrl-S blocks, is opened
 * again, because its flags are shared with the shell.
 */
export function standardOutputFd(): number {
  if (!isatty(1)) return process.stdout.fd ?? 1
  try {
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    return 1
  }
}

import { constants, openSync, write, writeSync } from 'node:fs'
import { isatty } from 'node:tty'

/**
 * The output of a log. Writing never blocks: if the reader is slow, lines are buffered up to a limit, then dropped
 * and counted.
 */
export type Output = {
  write(line: string): void
  /** Resolves when every line is written, or after `limitMs`. */
  flush(limitMs: number): Promise<void>
  /** For the exit of the process: writes what it can within half a second. */
  flushSync(): void
  /** Lines dropped since the last report. */
  dropped(): number
  /** Drops everything from now on without counting it. */
  mute(): void
}

/** In characters; a busy server fills it in a few seconds. */
const heldMax = 4 * 1024 * 1024
/** Lines are gathered, because one write per line would cost a tenth of the throughput. */
const gather = { length: 65_536, ms: 500 }
/** The wait between attempts to write to a full pipe; it doubles up to `max`. */
const retryMs = { first: 1, max: 50 }
const farewellMs = 500

/** Once the output takes lines again, `onRoom` is called with the number of lines dropped. */
export function createOutput(fd: number, onRoom: (dropped: number) => void = () => {}): Output {
  let lines: string[] = []
  let held = 0
  /** What is being written, and whether a write is pending in the system. */
  let chunk: Buffer | undefined
  let isUnderWay = false
  let retryAfter = retryMs.first
  let dropped = 0
  let isMuted = false
  /** During a flush, lines are written at once instead of gathered. */
  let isHurried = false
  let timer: NodeJS.Timeout | undefined
  let idle = Promise.withResolvers<void>()

  const next = (): void => {
    clearTimeout(timer)
    timer = undefined
    chunk = Buffer.from(lines.join(''))
    lines = []
    held = 0
    put()
  }
  const put = (): void => {
    isUnderWay = true
    write(fd, chunk as Buffer, (error, count) => {
      isUnderWay = false
      if (isMuted) return
      if (error) failed(error)
      else advance(count)
    })
  }
  const advance = (count: number): void => {
    retryAfter = retryMs.first
    chunk = chunk?.subarray(count)
    if (chunk && chunk.length > 0) {
      put()
      return
    }
    // While `chunk` is still set, so that the line of the report is gathered and not written on its own.
    if (dropped > 0) report()
    chunk = undefined
    if (held >= (isHurried ? 1 : gather.length)) next()
    else if (held > 0) arm()
    else {
      idle.resolve()
      idle = Promise.withResolvers()
    }
  }
  const failed = ({ code }: NodeJS.ErrnoException): void => {
    // The reader is gone for good; a closed terminal gives EIO.
    if (code === 'EPIPE' || code === 'EIO' || code === 'EBADF') {
      mute()
      return
    }
    // A pipe is full until it is read, a disk until space is freed.
    setTimeout(() => isMuted || put(), code === 'EAGAIN' ? retryAfter : 1000).unref()
    retryAfter = Math.min(retryAfter * 2, retryMs.max)
  }
  const report = (): void => {
    const count = dropped
    dropped = 0
    onRoom(count)
  }
  const arm = (): void => {
    timer ??= setTimeout(next, gather.ms).unref()
  }
  const mute = (): void => {
    isMuted = true
    clearTimeout(timer)
    lines = []
    held = 0
    chunk = undefined
    idle.resolve()
  }

  return {
    write: (line) => {
      if (isMuted) return
      if (held + (chunk?.length ?? 0) + line.length > heldMax) {
        dropped += 1
        return
      }
      lines.push(line)
      held += line.length
      if (chunk) return
      if (held >= gather.length) next()
      else arm()
    },
    flush: async (limitMs) => {
      if (isMuted || (!chunk && held === 0)) return
      isHurried = true
      if (!chunk) next()
      const limit = Promise.withResolvers<void>()
      const expired = setTimeout(limit.resolve, limitMs)
      await Promise.race([idle.promise, limit.promise])
      clearTimeout(expired)
      isHurried = false
    },
    flushSync: () => {
      // A pending write may or may not succeed; leave its chunk out rather than write it twice.
      const begun = isUnderWay ? undefined : chunk
      let rest = Buffer.concat([begun ?? Buffer.alloc(0), Buffer.from(lines.join(''))])
      const until = performance.now() + farewellMs
      while (rest.length > 0 && !isMuted && performance.now() < until) {
        try {
          rest = rest.subarray(writeSync(fd, rest))
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') break
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
        }
      }
      mute()
    },
    dropped: () => dropped,
    mute,
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

import { constants, openSync, write, writeSync } from 'node:fs'
import { isatty } from 'node:tty'

/**
 * Where the lines of a log go. Nobody waits for it, whatever its reader does: what the reader leaves lying is held up
 * to a limit, then lines are dropped and counted.
 */
export type Output = {
  write(line: string): void
  /** Resolves when every line is written, or after the time. */
  flush(limitMs: number): Promise<void>
  /** For the end of the process: writes what can be written within half a second. */
  flushSync(): void
  /** Lines dropped since the last report. */
  dropped(): number
  /** Drops everything from now on, uncounted. */
  mute(): void
}

/** Characters; a busy server fills it in a few seconds. */
const maxHeld = 4 * 1024 * 1024
/** Lines are gathered: a write for each would cost a tenth of the throughput. */
const gather = { length: 65_536, ms: 500 }
/** Between attempts at a pipe that is full. */
const retryMs = { first: 1, most: 50 }
const farewellMs = 500

/** `onRoom` is told how many lines were dropped as soon as the output takes some again. */
export function createOutput(fd: number, onRoom: (dropped: number) => void = () => {}): Output {
  let lines: string[] = []
  let held = 0
  /** What is being written, and whether the system has it at this moment. */
  let chunk: Buffer | undefined
  let isUnderWay = false
  let retryAfter = retryMs.first
  let dropped = 0
  let isMuted = false
  /** Nothing is gathered while somebody waits for the end of a flush. */
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
    // With the chunk still in its place, which keeps the report from being written by itself.
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
    // Its reader is gone for good; a closed terminal answers EIO.
    if (code === 'EPIPE' || code === 'EIO' || code === 'EBADF') {
      mute()
      return
    }
    // Full: a pipe until somebody reads, a disk until somebody deletes.
    setTimeout(() => isMuted || put(), code === 'EAGAIN' ? retryAfter : 1000).unref()
    retryAfter = Math.min(retryAfter * 2, retryMs.most)
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
      if (held + (chunk?.length ?? 0) + line.length > maxHeld) {
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
      // What the system has at this moment may be written or not: it is not written twice.
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
 * A descriptor of standard output on which no write waits: one that did would hold a thread that the end of the
 * process waits for. The look at `process.stdout` makes a pipe so. A terminal, which Ctrl-S stops, is opened anew:
 * its own state is shared with the shell.
 */
export function standardOutputFd(): number {
  if (!isatty(1)) return process.stdout.fd ?? 1
  try {
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    return 1
  }
}

import { type DestinationStream, destination, type Logger, pino } from 'pino'

/** What the service needs of a logger; any pino logger is one. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** JSON lines with `time`, `level`, `msg` (contract 1, section 15.4); `level` as a word. */
export function createLog(level: string, stream: DestinationStream = standardOutput()): Logger {
  const options = {
    level,
    base: null,
    timestamp: isoTime(),
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return pino(options, stream)
}

/** The time of a line in pino's form, made once per millisecond: a busy server logs many lines in one. */
function isoTime(): () => string {
  let at = 0
  let text = ''
  return () => {
    const now = Date.now()
    if (now !== at) text = `,"time":"${new Date(now).toISOString()}"`
    at = now
    return text
  }
}

/** Gathers lines for up to half a second: a write per request costs a tenth of the throughput. */
export function standardOutput(): Output {
  const gathering = {
    minLength: 65_536,
    maxWrite: 131_072,
    periodicFlush: 500,
    contentMode: 'buffer' as const,
  }
  const out = destination({ dest: 1, sync: false, ...gathering })
  // As bytes: of text, the destination would measure all that it has gathered again at every line.
  const write = out.write.bind(out) as unknown as (line: Buffer) => boolean
  out.write = (line) => write(Buffer.from(line))
  out.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EIO' || code === 'EPIPE') mute(out)
  })
  return out
}

export type Output = ReturnType<typeof destination>

/** Gives up an output whose reader is gone: a closed terminal answers EIO, which flushing would retry for ever. */
export function mute(out: Output): void {
  const nothing = (): void => {}
  Object.assign(out, { write: nothing, flush: nothing, flushSync: nothing, end: nothing, destroy: nothing })
}

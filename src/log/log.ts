import { type DestinationStream, type Logger, pino } from 'pino'
import { createOutput, type Output, standardOutputFd } from './output.ts'
import { textLines } from './text.ts'

/** What the service needs of a logger; any pino logger is one. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** JSON lines with `time`, `level`, `msg`; `level` as a word. */
export function createLog(level: string, stream: DestinationStream): Logger {
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

let standard: Output | undefined
let reportDropped: (dropped: number) => void

/** A log on the standard output of this process, and that output. */
export function openLog(level: string, format: 'json' | 'text' = 'json'): { log: Logger; out: Output } {
  standard ??= openStandardOutput()
  const log = createLog(level, format === 'text' ? textLines(standard) : standard)
  reportDropped = (dropped) =>
    log.error({ dropped }, 'lines are missing here: the reader of this log did not keep up')
  return { log, out: standard }
}

function openStandardOutput(): Output {
  const out = createOutput(standardOutputFd(), (dropped) => reportDropped(dropped))
  process.once('exit', out.flushSync)
  return out
}

/** For readiness: an operator whose log stands still looks there. */
export const logWarnings = (): string[] => (standard && standard.dropped() > 0 ? ['log_lines_dropped'] : [])

import { type DestinationStream, type Logger, pino } from 'pino'
import { createOutput, type Output, standardOutputFd } from './output.ts'
import { textLines } from './text.ts'

/** A line: fields for machines and a text, or a text alone. An error is the field `err`. */
export type LogLine = { (fields: object, text?: string): void; (text: string): void }
/** The part of a pino logger that the service uses; any object with these four functions will do. */
export type Log = Readonly<Record<'debug' | 'info' | 'warn' | 'error', LogLine>>

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A log of JSON lines with `time`, `level` (as a word) and `msg`. */
export function createLog(level: string, stream: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: isoTime(),
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return pino(options, stream)
}

/** The timestamp in pino's form, formatted once per millisecond: a busy server logs many lines in one. */
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

let standardOutput: Output | undefined
let reportDropped: (dropped: number) => void

/** A log that writes to the standard output of this process, and that output. */
export function openLog(level: string, format: 'json' | 'text' = 'json'): { log: Logger; out: Output } {
  standardOutput ??= openStandardOutput()
  const log = createLog(level, format === 'text' ? textLines(standardOutput) : standardOutput)
  reportDropped = (dropped) =>
    log.error({ dropped }, 'lines are missing here: the reader of this log did not keep up')
  return { log, out: standardOutput }
}

function openStandardOutput(): Output {
  const out = createOutput(standardOutputFd(), (dropped) => reportDropped(dropped))
  process.once('exit', () => out.flushSync())
  return out
}

/** Warnings for readiness, where an operator looks when the log has stopped. */
export const logWarnings = (): string[] =>
  standardOutput && standardOutput.dropped() > 0 ? ['log_lines_dropped'] : []

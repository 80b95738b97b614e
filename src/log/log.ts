import { inspect } from 'node:util'
import { type DestinationStream, type Logger, pino } from 'pino'
import type { EventLine, Log } from './events.ts'
import { Output, standardOutputFd } from './output.ts'
import { withoutRepeats } from './repeats.ts'
import { jsonLines, textLines } from './text.ts'

export type { EventLine, Log, LogLine } from './events.ts'

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** What every line of a process carries: its node, and the trace that it belongs to. */
type EveryLine = { node?: string; trace?: () => object | undefined }

/** A log of JSON lines with `time`, `level` (as a word) and `msg`. */
export function createLog(level: string, stream: DestinationStream, { node, trace }: EveryLine = {}): Logger {
  const options = {
    level,
    base: node === undefined ? null : { node },
    ...(trace && { mixin: () => trace() ?? {} }),
    timestamp: isoTime(),
    serializers: { err: errorFields },
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return pino(options, stream)
}

/** A line must not fail what it reports: pino cannot write an error that is frozen, or has a property that throws. */
function errorFields(error: unknown): unknown {
  try {
    return pino.stdSerializers.err(error as Error)
  } catch {
    return { stack: inspect(error) }
  }
}

/** A log of an embedder, often pino: an error that it fails to write, it gets as text. */
export function sturdy(log: Log): Log {
  const line =
    (level: 'warn' | 'error'): EventLine =>
    (fields, text) => {
      try {
        log[level](fields, text)
      } catch (failure) {
        if (fields.err === undefined) throw failure
        log[level]({ ...fields, err: inspect(fields.err) }, text)
      }
    }
  return {
    debug: log.debug.bind(log),
    info: log.info.bind(log),
    warn: line('warn'),
    error: line('error'),
  }
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

/** A log that writes to the standard output of this process, without repeats, and that output. */
export function openLog(
  level: string,
  format: 'json' | 'text' = 'json',
  every: EveryLine = {},
): { log: Log; out: Output } {
  standardOutput ??= openStandardOutput()
  const isText = format === 'text'
  const log = withoutRepeats(
    createLog(level, (isText ? textLines : jsonLines)(standardOutput), isText ? {} : every),
  )
  reportDropped = (dropped) =>
    log.error(
      { event: 'log_lines_dropped', dropped },
      'log lines are missing here; the reader of this log did not keep up',
    )
  return { log, out: standardOutput }
}

function openStandardOutput(): Output {
  const out = new Output(standardOutputFd(), (dropped) => reportDropped(dropped))
  process.once('exit', () => out.flushSync())
  return out
}

/** Warnings that readiness shows, because a stalled log cannot. */
export const logWarnings = (): string[] =>
  standardOutput && standardOutput.dropped() > 0 ? ['log_lines_dropped'] : []

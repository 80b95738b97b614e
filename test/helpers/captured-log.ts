import { createLog, type Log } from '../../src/log/log.ts'

/** A log as in production that keeps its lines in memory. */
export function capturedLog(): {
  log: Log
  /** Every line so far, parsed. */
  lines(): Record<string, unknown>[]
  /** Every line so far, as written. */
  text(): string
} {
  const written: string[] = []
  return {
    log: createLog('debug', { write: (line: string) => void written.push(line) }),
    lines: () => written.map((line) => JSON.parse(line)),
    text: () => written.join(''),
  }
}

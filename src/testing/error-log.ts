import { type Log, silentLog } from '../log/log.ts'

/**
 * The log of a test service, unless the test gives one: what callers get as `internal_error` is written to the output
 * of the test, with its stack and causes, as is whatever else failed unexpectedly.
 */
export const errorLog: Log = {
  ...silentLog,
  error: (fields: object | string, text?: string) => {
    if (typeof fields === 'string') return console.error(`cellkeep: ${fields}`)
    const { err, ...rest } = fields as { err?: unknown }
    console.error(`cellkeep: ${text}`, ...(err === undefined ? [rest] : [err]))
  },
}

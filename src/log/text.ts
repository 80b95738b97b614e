import type { DestinationStream } from 'pino'

/** Turns the JSON lines of a logger into lines for human readers (`log_format=text`): time, level, message, fields. */
export const textLines = (out: { write(text: string): unknown }): DestinationStream => ({
  write(line) {
    const { time, level, msg = '', err, ...fields } = JSON.parse(line) as Record<string, unknown>
    const rest = Object.entries(fields).map(([key, value]) => fieldText(key, value))
    const head = `${time} ${String(level).toUpperCase().padEnd(5)} ${printable(String(msg))}`
    out.write(`${head}${rest.join('')}${trace(err)}\n`)
  },
})

/** Passes JSON lines on; they escape of themselves only U+0000 to U+001F. */
export const jsonLines = (out: { write(text: string): unknown }): DestinationStream => ({
  write(line) {
    // Most lines are ASCII, which is quick to see.
    const isPrintable = Buffer.byteLength(line) === line.length && !line.includes('\x7f')
    out.write(isPrintable ? line : `${printable(line.trimEnd())}\n`)
  },
})

/** ` key=value`; a value that is not one plain word is quoted. */
export const fieldText = (key: string, value: unknown): string => ` ${key}=${shown(value)}`

function shown(value: unknown): string {
  const isPlain = typeof value === 'string' && /^[^\s"=\p{C}]+$/u.test(value)
  return isPlain ? value : printable(JSON.stringify(value) ?? '')
}

/** Escapes what could start a new log line or control a terminal: others choose the names and paths in a log. */
export const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (character) =>
    // By UTF-16 unit, so that JSON stays the same JSON.
    character.split('').map(escapedUnit).join(''),
  )

const escapedUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

function trace(err: unknown): string {
  if (typeof err !== 'object' || err === null) return err === undefined ? '' : ` err=${shown(err)}`
  const { stack, message } = err as { stack?: unknown; message?: unknown }
  const lines = String(stack ?? message ?? JSON.stringify(err)).split('\n')
  return lines.map((line) => `\n    ${printable(line)}`).join('')
}

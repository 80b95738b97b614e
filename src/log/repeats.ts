import type { EventLine, Log } from './events.ts'

/**
 * The first line of a cause is written at once; later ones at most this often, each with the number of lines that it
 * stands for.
 */
const windowMs = 10_000
/** Max causes that are told apart; beyond it, those of one event share a line. */
const causesMax = 200

type Repeats = { count: number; write(): void }

/** During an outage thousands of requests fail for one cause, which is worth a few lines. */
export function withoutRepeats(log: Log): Log {
  const known = new Map<string, Repeats>()

  const quiet =
    (level: 'warn' | 'error'): EventLine =>
    (fields, text) => {
      const cause = `${level} ${fields.event} ${text} ${causeOf(fields.err)}`
      const key = known.size < causesMax || known.has(cause) ? cause : fields.event
      const repeats = known.get(key)
      if (!repeats) {
        log[level](fields, text)
        return rest(key)
      }
      repeats.count += 1
      repeats.write = () => log[level]({ ...fields, repeated: repeats.count }, text)
    }

  const rest = (key: string): void => {
    const repeats: Repeats = { count: 0, write: () => {} }
    known.set(key, repeats)
    setTimeout(() => {
      known.delete(key)
      if (repeats.count === 0) return
      repeats.write()
      rest(key)
    }, windowMs).unref()
  }

  // Bound, because a logger may need its `this`.
  const { debug, info } = { debug: log.debug.bind(log), info: log.info.bind(log) }
  return { debug, info, warn: quiet('warn'), error: quiet('error') } as Log
}

/** Messages of the same cause may differ in ports and the like, so a code comes first. */
function causeOf(error: unknown): string {
  try {
    const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
    return String(code ?? message ?? '').slice(0, 200)
  } catch {
    // Anything may be thrown, even what throws when it is read.
    return ''
  }
}

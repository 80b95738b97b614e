import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** Much more than the sockets hold, so that the database does not work on while a turn is zipped. */
const mostTurnBytes = 2_097_152

/**
 * Gzip members, each finished before more is read. Reading and zipping at once would keep two processors busy, and
 * leave none for requests on a small machine. A text is copied before the next one is asked for.
 */
export async function* zipped(
  texts: AsyncIterable<Buffer>,
  turnBytes: number,
): AsyncGenerator<{ chunk: Buffer; of: number }> {
  const turn = Buffer.allocUnsafe(turnBytes)
  let used = 0
  const member = async (text: Buffer) => ({ chunk: await gzipped(text), of: text.length })
  for await (const text of texts) {
    if (used > 0 && used + text.length > turnBytes) {
      yield await member(turn.subarray(0, used))
      used = 0
    }
    if (text.length > turnBytes) yield await member(text)
    else used += text.copy(turn, used)
  }
  yield await member(turn.subarray(0, used))
}

const compress = promisify(gzip)
/** The default level 6 takes nearly three times the processor time for a tenth less. */
const gzipped = (text: Buffer): Promise<Buffer> => compress(text, { level: 4 })

/**
 * Turns short enough that requests find a free processor between them, and a wait after each turn that is ahead of the
 * rate.
 */
export function paced(maxRate: number | undefined, signal: AbortSignal | undefined) {
  if (maxRate === undefined) return { turnBytes: mostTurnBytes, wait: () => undefined }
  const begun = performance.now()
  let written = 0
  return {
    turnBytes: Math.ceil(Math.min(mostTurnBytes, maxRate / turnsPerSecond)),
    wait: async (bytes: number): Promise<void> => {
      written += bytes
      const early = begun + (written / maxRate) * 1000 - performance.now()
      if (early > 0) await delay(early, undefined, signal && { signal })
    },
  }
}

const turnsPerSecond = 64

import { parseJson } from '../wire/parse-json.ts'

const lineBytesMax = 65_536
const newline = 0x0a

/**
 * Parses one JSON value per line; a line that is not JSON, or longer than 64 KiB, becomes undefined. Blank lines at the
 * end are left out.
 */
export async function* jsonLines(chunks: AsyncIterable<Buffer | string>): AsyncGenerator<unknown> {
  let parts: Buffer[] = []
  let length = 0
  let blank = 0
  const add = (part: Buffer): void => {
    length += part.length
    // The rest of a line that is too long is not kept.
    if (length <= lineBytesMax) parts.push(part)
  }
  const take = function* (): Generator<unknown> {
    const line = length <= lineBytesMax ? Buffer.concat(parts) : undefined
    parts = []
    length = 0
    if (line && isBlank(line)) {
      blank += 1
      return
    }
    for (; blank > 0; blank--) yield undefined
    yield line && parsed(line)
  }
  for await (const given of chunks) {
    const chunk = Buffer.from(given as Buffer)
    let from = 0
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      add(chunk.subarray(from, at))
      from = at + 1
      yield* take()
    }
    if (from < chunk.length) add(chunk.subarray(from))
  }
  if (length > 0) yield* take()
}

const isBlank = (line: Buffer): boolean => /^\s*$/.test(line.toString('latin1'))

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parsed(line: Buffer): unknown {
  try {
    return parseJson(utf8.decode(line))
  } catch {
    return undefined
  }
}

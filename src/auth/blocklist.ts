import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Whether a password is listed, given its folded form. */
export type Blocklist = (folded: string) => boolean

/** Sorted 8-byte prefixes, made by `scripts/common-passwords.ts`. */
export const builtinList = new URL('../../data/common-passwords.bin', import.meta.url)

/** `source` is `builtin`, null for none, or a file whose lines are added to the builtin list. */
export function createBlocklist(source: string | null, fold: (text: string) => string): Blocklist {
  if (source === null) return () => false
  const lines = source === 'builtin' ? [] : readText(source).split(/\r?\n/)
  const bytes = readFileSync(builtinList)
  const builtin = (index: number): bigint => bytes.readBigUInt64BE(index * 8)
  // Digests rather than texts, so that a long list takes 8 bytes a line.
  const own = new BigUint64Array(lines.map((line) => prefixOf(fold(line)))).sort()
  return (folded) => {
    const sought = prefixOf(folded)
    return (
      holds(bytes.length / 8, builtin, sought) || holds(own.length, (index) => own[index] as bigint, sought)
    )
  }
}

/** Drops the byte order mark that some editors write at the start of a file. */
const readText = (path: string): string => new TextDecoder().decode(readFileSync(path))

export const prefixOf = (folded: string): bigint => hash('sha256', folded, 'buffer').readBigUInt64BE()

/** Whether the number is among so many, which ascend. */
function holds(count: number, numberAt: (index: number) => bigint, sought: bigint): boolean {
  let [from, to] = [0, count]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (numberAt(middle) < sought) from = middle + 1
    else to = middle
  }
  return from < count && numberAt(from) === sought
}

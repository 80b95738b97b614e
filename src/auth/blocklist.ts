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
  const builtin = Array.from({ length: bytes.length / 8 }, (_, index) => bytes.readBigUInt64BE(index * 8))
  // Stores digests rather than texts, so that a long custom list takes 8 bytes a line.
  const prefixes = new BigUint64Array([...builtin, ...lines.map((line) => prefixOf(fold(line)))]).sort()
  return (folded) => holds(prefixes, prefixOf(folded))
}

/** Drops the byte order mark that some editors write at the start of a file. */
const readText = (path: string): string => new TextDecoder().decode(readFileSync(path))

export const prefixOf = (folded: string): bigint => hash('sha256', folded, 'buffer').readBigUInt64BE()

function holds(sorted: BigUint64Array, sought: bigint): boolean {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((sorted[middle] as bigint) < sought) from = middle + 1
    else to = middle
  }
  return sorted[from] === sought
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const base = BigInt(digits.length)

/** The first `length` digits as a number; missing ones count as 0. */
const numberOf = (text: string, length: number): bigint =>
  [...text.slice(0, length).padEnd(length, '0')].reduce(
    (value, digit) => value * base + BigInt(digits.indexOf(digit)),
    0n,
  )

function textOf(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= base) text = digits[Number(rest % base)] + text
  return text
}

/**
 * The shortest position between two others in byte order that does not end in 0, from the middle of the range; a null
 * bound is the beginning or the end. Null: there is none, because `high` is `low` followed by nothing but zeros.
 */
export function between(low: string | null, high: string | null): string | null {
  const start = low ?? ''
  if (high?.startsWith(start) && /^0*$/.test(high.slice(start.length))) return null
  for (let length = 1; ; length++) {
    const first = numberOf(start, length) + 1n
    // A prefix of `high` comes before it.
    const last =
      high === null ? base ** BigInt(length) - 1n : numberOf(high, length) - (high.length > length ? 0n : 1n)
    let middle = (first + last) / 2n
    if (middle % base === 0n) middle += middle < last ? 1n : -1n
    if (first <= middle && middle <= last) return textOf(middle, length)
  }
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A position between two others in byte order, as short as it can be; null is the beginning or the end. */
export function between(low: string | null, high: string | null): string {
  let prefix = ''
  for (let index = 0; ; index++) {
    const from = low && index < low.length ? digits.indexOf(low[index] as string) : 0
    const to = high && index < high.length ? digits.indexOf(high[index] as string) : digits.length
    if (to - from > 1) return prefix + digits[(from + to) >> 1]
    prefix += digits[from]
    // Below the upper bound from here on, whatever follows.
    if (from < to) high = null
  }
}

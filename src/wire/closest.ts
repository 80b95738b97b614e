/** Ends a clause about an unknown name: `; did you mean port?`, or `end` if no name is near. */
export function meant(name: string, names: Iterable<string>, end = ''): string {
  const near = closest(name, names)
  return near === undefined ? end : `; did you mean ${near}?`
}

/** The name that was probably meant: at most two typos away; undefined if there is none. */
export function closest(name: string, names: Iterable<string>): string | undefined {
  let best: string | undefined
  let fewest = 3
  for (const candidate of names) {
    const count = mistakes(name, candidate)
    if (count < fewest) {
      best = candidate
      fewest = count
    }
  }
  return best
}

/** Levenshtein distance, infinite if the lengths differ by more than two. */
function mistakes(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** Ends a clause about an unknown name: `; did you mean port?`, or `end` if no name is near. */
export function meant(name: unknown, names: Iterable<string>, end = ''): string {
  const near = closest(String(name), names)
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

/**
 * Levenshtein distance; infinite if it is more than `most`. A table of all pairs of letters would take many times as
 * long, and anybody may send thousands of unknown names.
 */
function mistakes(a: string, b: string, most = 2): number {
  let same = 0
  while (same < a.length && a[same] === b[same]) same++
  if (same === a.length && same === b.length) return 0
  if (Math.abs(a.length - b.length) > most || most === 0) return Number.POSITIVE_INFINITY
  const [a0, b0, a1, b1] = [a.slice(same), b.slice(same), a.slice(same + 1), b.slice(same + 1)]
  return 1 + Math.min(mistakes(a1, b1, most - 1), mistakes(a1, b0, most - 1), mistakes(a0, b1, most - 1))
}

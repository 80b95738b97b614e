/** The median; for an even count, the mean of the two middle values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length / 2
  const upper = sorted[Math.floor(half)] ?? Number.NaN
  return Number.isInteger(half) ? ((sorted[half - 1] ?? Number.NaN) + upper) / 2 : upper
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** The values in random order (Fisher-Yates shuffle). */
export function shuffled<T>(values: readonly T[]): T[] {
  const all = [...values]
  for (let last = all.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1))
    ;[all[last], all[other]] = [all[other] as T, all[last] as T]
  }
  return all
}

/** Three significant digits, without an exponent. */
export const short = (value: number): string =>
  Number.isNaN(value) ? '–' : value >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))

/** A Markdown table; all columns but the first are right-aligned. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = head.map((_, index) => (index === 0 ? '---' : '---:'))
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}

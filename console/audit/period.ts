const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
const spans = [
  ...[minute, 5 * minute, 15 * minute, hour / 2, hour, 3 * hour, 6 * hour, 12 * hour],
  ...[day, 2 * day, 7 * day, 30 * day, 90 * day, 366 * day],
]
/** On a phone a bar is as wide as a finger, and leads to finer ones. */
export const barsMax = { phone: 12, other: 120 }

/** The period of the chart: its bounds in milliseconds, and its bars, `most` at most; by default the last day. */
export function periodOf(
  from: string | null | undefined,
  to: string | null | undefined,
  now: number,
  most: number,
): { from: number; to: number; bucket_s: number; count: number } {
  // The current time is rounded up, so that the query stays the same for a while.
  const end = to ? Date.parse(to) : Math.ceil(now / (hour / 2)) * (hour / 2)
  const begin = from ? Date.parse(from) : end - day
  const length = Math.max(end - begin, minute)
  const span = spans.find((one) => length / one <= most) ?? Math.ceil(length / most / day) * day
  return { from: begin, to: begin + length, bucket_s: span / 1000, count: Math.ceil(length / span) }
}

/** `ok`, or the reason of the refusal; rethrows any other error. */
export const reasonOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'ok',
    (error: { reason?: string; data?: { reason?: string } }) => {
      const reason = error.reason ?? error.data?.reason
      if (reason === undefined) throw error
      return reason
    },
  )

/** The number of times each outcome occurred, such as `{ ok: 1, cell_version_conflict: 19 }`. */
export async function tally(calls: Promise<unknown>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const reason of await Promise.all(calls.map(reasonOf))) counts[reason] = (counts[reason] ?? 0) + 1
  return counts
}

/** Repeats a call that got no connection within five seconds, as clients do: on a busy machine many at once take longer. */
export async function untilServed<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    const made = call()
    if ((await reasonOf(made)) !== 'service_unavailable') return await made
  }
}

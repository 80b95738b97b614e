import type { Answer, Layer } from './client.ts'

/** By its name a method that reads; `retry` has a test that holds the built-in methods to it. */
const reads = /[_.](get|list|history|lookup|search|verify|discover|preview|explain|activity|status)$/
const waitMaxMs = 30_000

/** No answer of the service, or one of those that pass: 502, 503, 504. */
const isTemporary = ({ status, reply }: Answer): boolean =>
  reply === undefined || (status > 501 && status < 505)

/** How long to wait: as long as the service asks for, and never in step with other clients. */
function waitOf({ reply, retry_after }: Answer, failures: number): number {
  const error = (reply as { error?: { data?: { retry_after?: number } } } | undefined)?.error
  const asked = error?.data?.retry_after ?? retry_after ?? 0
  const askedMs = Number(asked) >= 0 ? Number(asked) * 1_000 : Date.parse(String(asked)) - Date.now()
  return Math.max(askedMs, 0) + Math.random() * 300 * 2 ** failures
}

/**
 * Repeats reads that failed on the way or met a 502, 503 or 504, up to `times`. A read is a method whose name ends in
 * `_get`, `_list`, `_history`, `_lookup`, `_search`, `_verify`, `_preview`, `_explain`, `_activity` or `_status`, or
 * `.discover`. It is repeated by GET, by which the service carries out no mutation whatever its name. If the service asks
 * for a pause of more than 30 s, there is no repetition.
 */
export const retry =
  ({ times = 2 } = {}): Layer =>
  (next, { rpcPath, send }) =>
  async (method, params, signal) => {
    let answer = await next(method, params, signal)
    if (!reads.test(method)) return answer
    const query = new URLSearchParams({ method, id: '1', params: JSON.stringify(params ?? null) })
    for (let failures = 0; failures < times && isTemporary(answer) && !signal?.aborted; failures++) {
      const waitMs = waitOf(answer, failures)
      if (!(waitMs <= waitMaxMs)) break
      let timer: ReturnType<typeof setTimeout> | undefined
      await new Promise((resolve) => {
        timer = setTimeout(resolve, waitMs)
        signal?.addEventListener('abort', resolve)
      })
      clearTimeout(timer)
      if (signal?.aborted) break
      answer = await send('GET', `${rpcPath}?${query}`, undefined, signal)
    }
    return answer
  }

import type { Answer, Layer } from './client.ts'

/** Names of methods that read; a test of `retry` compares them with the built-in methods. */
const reads = /[_.](get|list|history|lookup|search|verify|discover|preview|explain|activity|status)$/
const waitMaxMs = 30_000

type Reply = { error?: { data?: { retry_after?: number; detail?: string } } } | undefined
const dataOf = ({ reply }: Answer) => (reply as Reply)?.error?.data

/** The wait before a repetition: what the service asks for, plus jitter, so that clients do not repeat in step. */
function waitOf(answer: Answer, jitterMs: number): number {
  const asked = dataOf(answer)?.retry_after ?? answer.retry_after ?? 0
  const askedMs = Number(asked) >= 0 ? Number(asked) * 1_000 : Date.parse(String(asked)) - Date.now()
  return Math.max(askedMs, 0) + Math.random() * jitterMs
}

/**
 * Repeats reads that failed on the way or met a 502, 503 or 504, up to `times`. A read is a method whose name ends in
 * `_get`, `_list`, `_history`, `_lookup`, `_search`, `_verify`, `_preview`, `_explain`, `_activity` or `_status`, or
 * `.discover`. It is repeated by GET, by which the service carries out no mutation whatever its name. If the service asks
 * for a pause of more than 30 s, there is no repetition.
 *
 * With `deadline_ms` calls are repeated for that long instead, also after a 429, and so are mutations: each has an
 * idempotency key, under which the service carries it out once. Methods that take no key are sent once.
 */
export const retry =
  ({
    times = 2,
    deadline_ms,
  }: {
    times?: number | undefined
    deadline_ms?: number | undefined
  } = {}): Layer =>
  (next, { rpcPath, send }) => {
    /** Methods that take no key, as the service said. */
    const keyless = new Set<string>()
    const [most, firstWaitMs] = deadline_ms ? [Number.POSITIVE_INFINITY, 200] : [times, 300]
    /** No answer of the service, or a temporary one. */
    const isTemporary = ({ status, reply }: Answer) =>
      !reply || (status > 501 && status < 505) || (status === 429 && deadline_ms)

    return async (method, params, signal) => {
      const isRead = reads.test(method)
      const once = (): Promise<Answer> => next(method, params, signal)
      if (!isRead && (!deadline_ms || keyless.has(method))) return once()
      let query: URLSearchParams
      try {
        query = new URLSearchParams({ method, id: '1', params: JSON.stringify(params ?? null) })
      } catch {
        // No repetition makes it one that JSON can represent.
        return once()
      }
      const began = Date.now()
      // Timers take whole milliseconds, and one that is longer would fire at once.
      const deadline = deadline_ms && AbortSignal.timeout(Math.min(deadline_ms, 2e9) | 0)
      const limits = [signal, deadline].filter(Boolean) as AbortSignal[]
      const limit = limits[0] && AbortSignal.any(limits)
      // In pages that came over plain http, browsers have no `crypto.randomUUID`.
      const key = { 'idempotency-key': crypto.getRandomValues(new Uint32Array(4)).join('-') }
      const attempt = (): Promise<Answer> =>
        isRead
          ? send('GET', `${rpcPath}?${query}`, undefined, limit)
          : send('POST', rpcPath, { jsonrpc: '2.0', id: 1, method, params }, limit, key)
      let answer = await (isRead ? next(method, params, limit) : attempt())
      if (dataOf(answer)?.detail === 'idempotency_not_supported') {
        keyless.add(method)
        return once()
      }
      for (let failures = 0; failures < most && isTemporary(answer) && !limit?.aborted; failures++) {
        const waitMs = waitOf(answer, firstWaitMs * 2 ** failures)
        if (!(waitMs <= waitMaxMs) || (deadline_ms && Date.now() - began + waitMs > deadline_ms)) break
        await new Promise<void>((resolve) => {
          const end = (): void => {
            clearTimeout(timer)
            limit?.removeEventListener('abort', end)
            resolve()
          }
          const timer = setTimeout(end, waitMs)
          limit?.addEventListener('abort', end)
        })
        if (!limit?.aborted) answer = await attempt()
      }
      return answer
    }
  }

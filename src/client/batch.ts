import type { Answer, Layer } from './client.ts'

/** Max calls that the service takes at once. */
const batchMax = 50
/** The HTTP statuses of the codes -32001, -32002 and so on, then of those around -32600. */
const statuses = [401, 403, 404, 409, 422, 429, 503, 504, 429, 499]
const others: Record<number, number> = { [-32600]: 400, [-32601]: 404, [-32602]: 400, [-32700]: 400 }

type Call = {
  method: string
  params: unknown
  signal: AbortSignal | undefined
  settle(answer: Answer | Promise<Answer>): void
}
type Entry = { error?: { code: number; data?: { reason: string } } }

/**
 * Sends the calls of one turn of the event loop as one request, or as several if there are more than 50 or they are too
 * large together. The service executes them one after the other; each has its own result or error.
 */
export const batch =
  (): Layer =>
  (next, { rpcPath, send }) => {
    let queue: Call[] = []
    /** Fails as without a batch, if it cannot be sent. */
    const alone = ({ method, params, signal, settle }: Call): void => settle(next(method, params, signal))
    const ask = (method: string, params: unknown, signal?: AbortSignal): Promise<Answer> =>
      new Promise((settle) => {
        const call = { method, params, signal, settle }
        try {
          // What JSON cannot represent would fail the calls of the others in the request.
          JSON.stringify(params)
        } catch {
          return alone(call)
        }
        if (queue.push(call) === 1) setTimeout(flush)
      })
    const flush = (): void => {
      const all = queue
      queue = []
      while (all.length) void share(all.splice(0, batchMax))
    }
    const share = async (asked: Call[]): Promise<void> => {
      const calls = asked.filter((call) => !call.signal?.aborted || alone(call))
      if (calls.length < 2) return calls.forEach(alone)
      const answered = new AbortController()
      const answer = await send('POST', rpcPath, calls.map(toEntry), leaving(calls, answered.signal))
      answered.abort()
      if (answer.status === 413) {
        void share(calls.splice(calls.length / 2))
        return share(calls)
      }
      for (const [at, { method, params, signal, settle }] of calls.entries()) {
        const reply: Entry | undefined = Array.isArray(answer.reply) ? answer.reply[at] : undefined
        if (!reply) settle(answer)
        // Earlier answers filled the batch, so this call was not executed.
        else if (reply.error?.data?.reason === 'batch_answer_too_large') settle(ask(method, params, signal))
        else settle({ status: statusOf(reply), text: '', reply })
      }
    }
    return ask
  }

const statusOf = ({ error }: Entry): number =>
  error ? (statuses[-32001 - error.code] ?? others[error.code] ?? 500) : 200
const toEntry = ({ method, params }: Call, id: number) => ({ jsonrpc: '2.0', id, method, params })

/** Settles calls that are aborted until `answered`, and aborts the request once all of them are. */
function leaving(calls: readonly Call[], answered: AbortSignal): AbortSignal {
  const request = new AbortController()
  let left = calls.length
  for (const { signal, settle } of calls)
    signal?.addEventListener(
      'abort',
      () => {
        settle({ status: 0, text: '', cause: signal.reason })
        left -= 1
        if (left === 0) request.abort(signal.reason)
      },
      // A signal may outlive many calls, and would keep each of them in memory.
      { signal: answered },
    )
  return request.signal
}

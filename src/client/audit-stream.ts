import type { AuditEvent } from '../audit/entry.ts'

/** Why the service closed a stream for good; `too_many_streams`: the same credential opened newer ones. */
export type AuditStreamEnd = 'revoked' | 'expired' | 'role_lost' | 'too_many_streams'

/** The stream ended and does not reconnect. `reason` is its close reason, or that of the refused request. */
export class AuditStreamError extends Error {
  readonly reason: AuditStreamEnd | (string & {})
  /** The HTTP status of a refused request; null when an open stream was closed. */
  readonly status: number | null

  constructor(reason: AuditStreamEnd | (string & {}), status: number | null) {
    super(`the audit stream ended: ${reason}`)
    this.name = 'AuditStreamError'
    this.reason = reason
    this.status = status
  }
}

/** `event`: a row of the log. `gap`: retention removed rows after `after`; the stream continues after `resumed_after`. */
export type AuditStreamItem =
  | { type: 'event'; seq: number; method: string; params: AuditEvent }
  | { type: 'gap'; after: number; resumed_after: number }

export type AuditStreamOptions = {
  /** The base URL of the service, such as `http://localhost:4040`. */
  url: string
  path?: string
  /** Headers of every request, such as `{ authorization: 'Bearer secret_svc_token_…' }`. A browser adds its cookie. */
  headers?: Record<string, string>
  /** The acting actor, for an account with several. */
  acting?: string
  /** The `seq` of the last row already read; without it the stream starts with new rows. */
  after?: number
  /** Ends the iteration, which throws the reason of the signal. */
  signal?: AbortSignal
  fetch?: typeof globalThis.fetch
}

/** The service sends something every 15 s; a connection that is silent for this long is dead. */
const silenceMs = 45_000
const longestWaitMs = 30_000

/**
 * Follows the audit log: `for await (const item of auditStream({ url, after }))`. Each row comes once, in rising
 * `seq`. After a lost connection, `shutdown` or `slow_consumer` it pauses with jitter and reconnects after the
 * last row it yielded. An error that a retry cannot fix throws `AuditStreamError`. Leaving the loop closes the
 * connection.
 */
export async function* auditStream(options: AuditStreamOptions): AsyncGenerator<AuditStreamItem, never> {
  const { signal } = options
  // Without `after` the first request asks for a position in the future. The service answers with the newest row,
  // so a reconnect loses no rows even if the connection drops before the first event.
  let isPlaced = options.after !== undefined
  let after = options.after ?? Number.MAX_SAFE_INTEGER
  const pause = { ms: 3_000, failures: 0 }
  for (;;) {
    try {
      for await (const block of blocks(options, after, pause)) {
        const item = itemOf(block)
        if (!item) continue
        after = item.type === 'gap' ? item.resumed_after : item.seq
        if (isPlaced || item.type === 'event') yield item
        isPlaced = true
      }
    } catch (error) {
      if (error instanceof AuditStreamError) throw error
    }
    signal?.throwIfAborted()
    const maxWaitMs = Math.min(pause.ms * 2 ** pause.failures, longestWaitMs)
    pause.failures += 1
    await sleep(Math.random() * maxWaitMs, signal)
  }
}

type Block = { event: string; id: string; data: string }

/** Yields the blocks of one connection; returns when reconnecting may help. */
async function* blocks(
  {
    url,
    path = '/api/account/audit/stream',
    headers,
    acting,
    signal,
    fetch = globalThis.fetch,
  }: AuditStreamOptions,
  after: number,
  pause: { ms: number; failures: number },
): AsyncGenerator<Block> {
  const connection = new AbortController()
  const abort = (): void => connection.abort(signal?.reason)
  signal?.addEventListener('abort', abort)
  let silence = setTimeout(abort, silenceMs)
  try {
    signal?.throwIfAborted()
    const response = await fetch(url + path + (acting ? `?acting=${encodeURIComponent(acting)}` : ''), {
      credentials: 'include',
      headers: { ...headers, 'last-event-id': String(after) },
      signal: connection.signal,
    })
    if (!response.ok || !response.body) return await refuse(response)
    const reader = response.body.getReader()
    const text = new TextDecoder()
    let rest = ''
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      clearTimeout(silence)
      rest += text.decode(value, { stream: true })
      const whole = rest.split('\n\n')
      rest = whole.pop() as string
      for (const one of whole) {
        const { retry, ...block } = fieldsOf(one)
        if (retry) pause.ms = Number(retry)
        pause.failures = 0
        yield block
        if (block.event === 'close') return ended(JSON.parse(block.data).reason)
      }
      // The timer is off while the consumer handles a block: it may take as long as it likes.
      silence = setTimeout(abort, silenceMs)
    }
  } finally {
    clearTimeout(silence)
    signal?.removeEventListener('abort', abort)
    connection.abort()
  }
}

const temporary = new Set([408, 429, 500, 502, 503, 504])

async function refuse(response: Response): Promise<void> {
  if (temporary.has(response.status)) return
  const body = (await response.json().catch(() => null)) as { error?: string } | null
  throw new AuditStreamError(String(body?.error), response.status)
}

function ended(reason: string): void {
  if (reason !== 'shutdown' && reason !== 'slow_consumer') throw new AuditStreamError(reason, null)
}

function fieldsOf(block: string): Block & { retry?: string } {
  const fields: Block & { retry?: string } = { event: 'message', id: '', data: '' }
  for (const line of block.split('\n')) {
    const end = line.indexOf(': ')
    if (end > 0) fields[line.slice(0, end) as keyof Block] = line.slice(end + 2)
  }
  return fields
}

function itemOf({ event, id, data }: Block): AuditStreamItem | undefined {
  if (event === 'gap') return { type: 'gap', ...JSON.parse(data) }
  return event === 'message' && data ? { type: 'event', seq: Number(id), ...JSON.parse(data) } : undefined
}

const sleep = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end)
      resolve()
    }, ms)
    signal?.addEventListener('abort', end, { once: true })
  })

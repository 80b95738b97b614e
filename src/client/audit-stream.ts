import type { AuditEvent } from '../audit/entry.ts'

/** What the service says when it ends a stream for good; `too_many_streams`: newer ones of the credential took its place. */
export type AuditStreamEnd = 'revoked' | 'expired' | 'role_lost' | 'too_many_streams'

/** The stream ended and does not come back by itself: its close reason, or the reason of a refused request. */
export class AuditStreamError extends Error {
  readonly reason: AuditStreamEnd | (string & {})
  /** Of a refused request; null where an open stream was ended. */
  readonly status: number | null

  constructor(reason: AuditStreamEnd | (string & {}), status: number | null) {
    super(`the audit stream ended: ${reason}`)
    this.name = 'AuditStreamError'
    this.reason = reason
    this.status = status
  }
}

/** `event`: a row of the log. `gap`: rows after `after` are gone by retention; the stream goes on after `resumed_after`. */
export type AuditStreamItem =
  | { type: 'event'; seq: number; method: string; params: AuditEvent }
  | { type: 'gap'; after: number; resumed_after: number }

export type AuditStreamOptions = {
  /** Where the service is, such as `http://localhost:4040`. */
  url: string
  path?: string
  /** Sent with every request, such as `{ authorization: 'Bearer secret_svc_token_…' }`. A browser sends its cookie. */
  headers?: Record<string, string>
  /** The actor that reads, for an account with several. */
  acting?: string
  /** The `seq` of the last row that is known already; left out: from now on. */
  after?: number
  /** Ends the iteration, which then throws the reason of the signal. */
  signal?: AbortSignal
  fetch?: typeof globalThis.fetch
}

/** The service says something every 15 s; a connection that is silent for longer is dead. */
const silenceMs = 45_000
const longestWaitMs = 30_000

/**
 * The audit log as it grows: `for await (const item of auditStream({ url, after }))`. Each row comes once and in
 * rising `seq`, over as many connections as it takes: lost ones, `shutdown` and `slow_consumer` are connected
 * anew behind the last row that was handed out, after a pause with jitter. What would fail again throws
 * `AuditStreamError`. Leaving the loop closes the connection.
 */
export async function* auditStream(options: AuditStreamOptions): AsyncGenerator<AuditStreamItem, never> {
  const { signal } = options
  // Without a position the first connection asks for one that lies in the future: the answer names the newest
  // row, so that a connection lost before the first event loses nothing either.
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
    const most = Math.min(pause.ms * 2 ** pause.failures, longestWaitMs)
    pause.failures += 1
    await sleep(Math.random() * most, signal)
  }
}

type Block = { event: string; id: string; data: string }

/** The blocks of one connection; returns when another is worth trying. */
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
      // Not while the reader of the blocks is at work: it may take as long as it likes.
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

import type { AuditEvent } from '../audit/entry.ts'
import { type Connection, type ConnectionOptions, connectionOf, type Linked, link } from './client.ts'

/** Why the service closed a stream for good; `too_many_streams`: the same credential opened newer ones. */
export type AuditStreamEnd = 'revoked' | 'expired' | 'role_lost' | 'too_many_streams'

/** The stream ended and does not reconnect. `reason` is its close reason, or that of the refused request. */
export class AuditStreamError extends Error {
  readonly reason: AuditStreamEnd | (string & {})
  /** The HTTP status of a refused request; null when an open stream was closed. */
  readonly status: number | null

  constructor(reason: AuditStreamEnd | (string & {}), status: number | null) {
    super(`the audit stream ended: ${reason}${status === null ? '' : ` (status ${status})`}`)
    this.name = 'AuditStreamError'
    this.reason = reason
    this.status = status
  }
}

/**
 * `event`: a row of the log. `gap`: it continues after `resumed_after`, because retention removed the rows in between,
 * or because the log ends before `after`.
 */
export type AuditStreamItem =
  | { type: 'event'; seq: number; method: string; params: AuditEvent }
  | { type: 'gap'; after: number; resumed_after: number }

export type AuditStreamSettings = {
  path?: string | undefined
  /** The acting actor, for an account with several. */
  acting?: string | undefined
  /** The `seq` of the last row already read; without it the stream starts with new rows. */
  after?: number | undefined
  /** Called when a connection opens: the first one, and each that follows a lost one. */
  opened?: (() => void) | undefined
  /**
   * Called when a connection was lost. The next attempt is in `wait_ms` milliseconds and continues after the row
   * `after`, if there was one.
   */
  lost?: ((about: { after: number | null; wait_ms: number }) => void) | undefined
  /** Ends the iteration, which throws the reason of the signal. */
  signal?: AbortSignal | undefined
}

/** For a stream without a client; its credential, if not the browser's cookie, is in `headers` or `token`. */
export type AuditStreamOptions = AuditStreamSettings & ConnectionOptions

/** The service sends something every 15 s; a connection that is silent for this long is dead. */
const silenceMs = 45_000
const waitMaxMs = 30_000

/**
 * Follows the audit log: `for await (const item of auditStream(client, { after }))`. Each row comes once, in rising
 * `seq`. After a lost connection, `shutdown` or `slow_consumer` it pauses with jitter and reconnects after the
 * last row it yielded. An error that a retry cannot fix throws `AuditStreamError`. Leaving the loop closes the
 * connection.
 */
export async function* auditStream(
  client: Linked | AuditStreamOptions,
  given?: AuditStreamSettings,
): AsyncGenerator<AuditStreamItem, never> {
  const to = connectionOf(client)
  const settings: AuditStreamSettings = given ?? (link in client ? {} : client)
  const { signal } = settings
  // Without `after` the first request asks for a position in the future. The service answers with the newest row,
  // so a reconnect loses no rows even if the connection drops before the first event.
  let isPlaced = settings.after !== undefined
  let after = settings.after ?? Number.MAX_SAFE_INTEGER
  const pause = { ms: 3_000, failures: 0 }
  for (;;) {
    try {
      for await (const block of blocks(to, settings, after, pause)) {
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
    const wait_ms = Math.random() * Math.min(pause.ms * 2 ** pause.failures, waitMaxMs)
    pause.failures += 1
    settings.lost?.({ after: isPlaced ? after : null, wait_ms })
    await sleep(wait_ms, signal)
  }
}

type Block = { event: string; id: string; data: string }

/** Yields the blocks of one connection; returns when reconnecting may help. */
async function* blocks(
  { url, accountPath, headers, fetch }: Connection,
  { path = `${accountPath}/audit/stream`, acting, signal, opened }: AuditStreamSettings,
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
      redirect: 'manual',
      headers: { ...headers(), 'last-event-id': String(after) },
      signal: connection.signal,
    })
    if (!response.ok || !response.body) return await refuse(response)
    opened?.()
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
  throw new AuditStreamError(body?.error ?? 'transport_failed', response.status)
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
    if (signal?.aborted) return reject(signal.reason)
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

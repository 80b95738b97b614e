import { setTimeout as delay } from 'node:timers/promises'
import { fold } from '../accounts/formats.ts'
import { sha256Hex } from '../auth/secrets.ts'
import type { App } from '../core/app.ts'
import { hasReason } from '../errors.ts'
import { type Deliver, DeliveryRefused, type Message } from '../registry/messages.ts'
import { isDeliverable, withAsciiDomain } from '../wire/address.ts'
import { type Claimed, type MessageError, messageOf, type Outcome, record } from './claim.ts'

const limitMs = 30_000
/** The pause before an outcome that could not be recorded is recorded again. */
const againMs = 1_000

/** Thrown by a transport that could not be reached or was not ready; the delivery is tried again. */
export class Unreachable extends Error {
  readonly code: string
  constructor(code: string) {
    super(code)
    this.code = code
  }
}

/**
 * Tries to deliver a claimed message and records the outcome. Holds no connection of the database meanwhile. Undefined
 * if `stop` interrupted it: its lease then ends, and a node takes it again.
 */
export async function deliverOne(
  app: App,
  deliver: Deliver,
  row: Claimed,
  stop?: AbortSignal,
): Promise<Outcome | undefined> {
  const message = messageOf(app, row)
  const held = await reasonNotTo(app, row, message)
  if (held) return await recorded(app, row, held, stop)
  const limit = AbortSignal.timeout(limitMs)
  const signal = stop ? AbortSignal.any([limit, stop]) : limit
  try {
    await within(signal, async () => deliver(message as Message, { signal, attempt: row.attempts }))
  } catch (error) {
    if (stop?.aborted) return undefined
    const outcome: Outcome =
      error instanceof DeliveryRefused
        ? { state: 'failed', error: 'refused' }
        : { state: 'queued', error: errorOf(error, limit) }
    const { id: message_id, attempts: attempt } = row
    app.log.warn(
      { event: 'delivery_failed', message_id, attempt, error: outcome.error, ...whereabouts(error) },
      'a message was not delivered',
    )
    return await recorded(app, row, outcome, stop)
  }
  return await recorded(app, row, { state: 'sent', error: null }, stop)
}

/**
 * Waits until the database is back or has room, unless somebody waits for the outcome: a message that was sent, but not
 * recorded, would be sent again.
 */
async function recorded(app: App, row: Claimed, outcome: Outcome, stop?: AbortSignal): Promise<Outcome> {
  for (;;) {
    try {
      return await record(app, row, outcome)
    } catch (error) {
      if (!stop || !hasReason(error, 'service_unavailable', 'timeout', 'storage_full')) throw error
      await delay(againMs, undefined, { signal: stop, ref: false }).catch(() => {})
      if (stop.aborted) throw error
    }
  }
}

const errorOf = (error: unknown, limit: AbortSignal): MessageError =>
  limit.aborted ? 'timeout' : error instanceof Unreachable ? 'unreachable' : 'hook_failed'

/** Omits the text of the error, which may quote the address or the link. A hook may throw anything. */
const whereabouts = (error: unknown): { code?: unknown; stack?: string[] } => {
  if (!(error instanceof Error)) return {}
  const { code, stack } = error as { code?: unknown; stack?: unknown }
  return {
    code,
    stack: String(stack)
      .split('\n')
      .filter((line) => line.startsWith('    at ')),
  }
}

async function reasonNotTo(
  app: App,
  row: Claimed,
  message: Message | undefined,
): Promise<Outcome | undefined> {
  if (row.is_over) return { state: 'failed', error: 'expired' }
  if (!isDeliverable(row.to_address)) return { state: 'failed', error: 'undeliverable' }
  if (!message) {
    app.log.error(
      { event: 'sealed_lost', message_id: row.id },
      'no secret key decrypts the link of a message',
    )
    return { state: 'failed', error: 'unsealable' }
  }
  if (row.attempts === 1 && (await isOverLimit(app, row))) return { state: 'suppressed', error: 'limited' }
  return undefined
}

/**
 * Charged once per message, however often its delivery is tried. Links to an address that somebody typed are counted
 * apart, or anybody could use up those that the account of the address needs.
 */
async function isOverLimit({ limiters }: App, { purpose, to_address }: Claimed): Promise<boolean> {
  if (purpose === 'test') return false
  const limiter = purpose === 'notice' ? 'mail_notice' : 'mail_address'
  const key = sha256Hex(fold(withAsciiDomain(to_address)))
  const isTyped = purpose === 'email_change' || purpose === 'invite'
  try {
    await limiters.take(limiter, isTyped ? `typed ${key}` : key)
    return false
  } catch (error) {
    if (hasReason(error, 'rate_limited')) return true
    throw error
  }
}

/** Does not wait for a transport that ignores the signal. */
async function within(signal: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  // One that has aborted before reports it to no listener.
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await Promise.race([work(), promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

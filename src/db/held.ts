import { AsyncLocalStorage } from 'node:async_hooks'
import { hasReason, refusal, ServiceError } from '../errors.ts'
import type { Pool } from './pool.ts'
import {
  asError,
  databaseRefusal,
  isInAborted,
  isUnsent,
  refused,
  resolutionUnknown,
  takesNoWrites,
  withCause,
  withoutValues,
} from './servers/failure.ts'
import { transactionLimitMs } from './servers/session-settings.ts'
import type { Slot } from './slots.ts'
import type { Sql } from './sql.ts'
import { isWornOut } from './statement-names.ts'

/** The running transaction; marked closed when it ends, because a promise that was not awaited may outlive it. */
export const enclosing = new AsyncLocalStorage<{ isOpen: boolean }>()

export type Answer = readonly unknown[] | Error
export type Sent = {
  answer: Promise<Answer>
  /** The error to throw if the last statement failed and COMMIT was answered with ROLLBACK. */
  failed(error: Error): Error
}

/** The last statement failed and so aborted the transaction. */
export class LastFailed extends Error {
  constructor(cause: Error) {
    super('The last statement of a transaction failed', { cause })
  }
}

export type Held = {
  level: string
  /** A statement was sent, or waits for the connection. */
  isUsed: boolean
  /** The error of BEGIN, if any; undefined if it was not sent. */
  begun?: Promise<unknown>
  /** The first error of a statement of the work, which need not have been awaited. */
  failed?: unknown
  /** Of a statement that is the whole transaction; while it is `sent`, it may have committed. */
  lone: 'none' | 'sent' | 'committed'
  /** True once COMMIT or ROLLBACK goes out: what is sent afterwards would be a transaction of its own. */
  isEnded: boolean
  /** The connection; the first call takes it. Rejects with `service_unavailable`. */
  client(): Promise<Slot>
  isOverdue(): boolean
  /**
   * Rejects when the time limit is exceeded, as the work may wait for something that never happens; but not if it may
   * be committed.
   */
  readonly overdue: Promise<never>
  /** Sends COMMIT or ROLLBACK. */
  end(client: Slot, command: 'commit' | 'rollback'): Promise<{ command: string }>
  /** Gives the connection back. */
  release(isBroken: boolean): void
}

type HoldOptions = {
  level: string
  isNameless: boolean
  /** Takes advisory locks for the session, before BEGIN. */
  lock: Sql | undefined
}

/**
 * A transaction that takes its connection with its first statement, so that work without statements occupies none. The
 * connection is destroyed when the transaction exceeds its time limit.
 */
export function hold(pool: Pool, { level, isNameless, lock }: HoldOptions): Held {
  let slot: Slot | undefined
  let taken: Promise<Slot> | undefined
  let isOverdue = false
  const overdue = Promise.withResolvers<never>()
  overdue.promise.catch(() => {})
  const limit = (): NodeJS.Timeout =>
    setTimeout(() => {
      isOverdue = true
      slot?.release(true)
      if (held.lone === 'none') overdue.reject(refusal('timeout'))
    }, transactionLimitMs)
  // Work that waits for something before its first statement holds the place of its caller.
  let timer = limit()
  const take = async (): Promise<Slot> => {
    clearTimeout(timer)
    slot = await pool.connect()
    slot.isNameless = isNameless
    timer = limit()
    if (lock) void pool.send(slot, lock).catch(asError)
    return slot
  }
  const held: Held = {
    level,
    isUsed: false,
    lone: 'none',
    isEnded: false,
    client: async () => {
      if (isOverdue) throw refusal('timeout')
      requireOpen(held)
      taken ??= take()
      return await taken
    },
    isOverdue: () => isOverdue,
    overdue: overdue.promise,
    end: (client, command) => {
      held.isEnded = true
      const ended = pool.command(client, command)
      // Sent together, so that no pause of this process holds the locks. Without a connection there are none.
      if (lock)
        pool.command(client, 'select pg_advisory_unlock_all()').catch(() => client.end().catch(asError))
      return ended
    },
    release: (isBroken) => {
      held.isEnded = true
      clearTimeout(timer)
      if (slot && !isOverdue) slot.release(isBroken || isWornOut(slot))
    },
  }
  return held
}

/** Refuses a statement of work that goes on, such as one of several branches after another has failed. */
export function requireOpen({ isEnded }: Held): void {
  if (isEnded) throw new Error('The transaction has ended: await all of its statements within its work.')
}

/** The connection with its transaction begun. BEGIN goes out with the first statement; `run` checks for its failure. */
export async function begin(held: Held): Promise<Slot> {
  held.isUsed = true
  const client = await held.client()
  held.begun ??= client.query(`begin isolation level ${held.level} read write`).catch(asError)
  return client
}

export async function alone<T>(
  pool: Pool,
  held: Held,
  query: Sql,
  isOfLast: (error: unknown) => boolean,
): Promise<T | undefined> {
  held.isUsed = true
  const client = await held.client()
  held.lone = 'sent'
  try {
    const { rows } = await confirmed(client, () => pool.sendAlone(client, query))
    held.lone = rows.length > 0 ? 'committed' : 'none'
    return rows[0] as T | undefined
  } catch (error) {
    if (isOfLast(error)) throw new LastFailed(error as Error)
    throw held.isOverdue() ? unknown(refused(error)) : afterSending(error)
  }
}

/** The error of a statement that commits by itself; if its answer was lost, it may have committed. */
export const afterSending = (error: unknown): unknown =>
  isUnsent(error) ? refused(error) : afterCommit(error)

/** Runs the work; if it or BEGIN fails, rolls back and releases the connection. */
export async function run<R>(held: Held, work: () => Promise<R>): Promise<R> {
  const { isOverdue, release } = held
  const own = { isOpen: true }
  try {
    const result = await Promise.race([enclosing.run(own, work), held.overdue])
    // A statement that was not awaited may still wait for the connection.
    if (held.isUsed) await held.client()
    const failed = await held.begun
    if (failed instanceof Error) throw databaseRefusal(failed) ?? failed
    return result
  } catch (error) {
    const client = held.isUsed ? await held.client().catch(() => undefined) : undefined
    const replaced = [error, await held.begun].find(takesNoWrites)
    held.isEnded = true
    const isBroken =
      isOverdue() ||
      replaced !== undefined ||
      (client !== undefined &&
        (await held.end(client, 'rollback').then(
          () => false,
          () => true,
        )))
    release(isBroken)
    if (replaced) throw withCause(refusal('service_unavailable'), replaced)
    const isUnknown = error instanceof ServiceError && error.outcome === 'unknown'
    throw isOverdue() && !isUnknown ? withCause(refusal('timeout'), error) : error
  } finally {
    own.isOpen = false
  }
}

/** Commits, and resolves to what the last statement answered. */
export async function commit(held: Held, sent: Sent | undefined): Promise<Answer | undefined> {
  const { begun, isOverdue, release } = held
  if (begun === undefined) return release(false) as undefined
  const client = await held.client()
  try {
    const ended = await confirmed(client, () => held.end(client, 'commit'))
    const answer = await sent?.answer
    // After a failed statement COMMIT resolves too, but with ROLLBACK as its command tag.
    if (ended.command === 'ROLLBACK')
      throw answer instanceof Error && sent && !isInAborted(answer)
        ? sent.failed(answer)
        : (held.failed ?? new Error('COMMIT ended in a rollback'))
    release(false)
    return answer
  } catch (error) {
    const refused = databaseRefusal(withoutValues(error))
    release(true)
    if (refused && isUnsent(error)) throw refused
    if (isOverdue() || refused?.data.reason === 'service_unavailable')
      throw unknown(refused ?? withCause(refusal('service_unavailable'), error))
    throw refused ?? error
  }
}

/** Rejects like a lost connection if the server has committed but the standby may not have the commit. */
export async function confirmed<T>(slot: Slot, commit: () => Promise<T>): Promise<T> {
  slot.isUnconfirmed = false
  const answer = await commit()
  if (slot.isUnconfirmed)
    throw Object.assign(new Error('the standby has not confirmed the commit'), { code: resolutionUnknown })
  return answer
}

/** The error of work that is or may be committed: the caller must not be told that nothing was done. */
export function afterCommit(error: unknown): unknown {
  const known = refused(error)
  return hasReason(known, 'service_unavailable') ? unknown(known) : known
}

function unknown(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error
  error.outcome = 'unknown'
  error.data.outcome = 'unknown'
  return error
}

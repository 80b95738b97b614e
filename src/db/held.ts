import { AsyncLocalStorage } from 'node:async_hooks'
import type pg from 'pg'
import { refusal, ServiceError } from '../errors.ts'
import {
  databaseRefusal,
  isInAborted,
  isUnsent,
  refused,
  resolutionUnknown,
  takesNoWrites,
  withCause,
  withoutValues,
} from './failure.ts'
import { noticesOf } from './notices.ts'
import { type Pool, transactionLimitMs } from './pool.ts'
import type { Slot } from './slots.ts'
import { isWornOut, type Sql } from './sql.ts'

/** The running transaction; marked closed when it ends, because a promise that was not awaited may outlive it. */
export const enclosing = new AsyncLocalStorage<{ isOpen: boolean }>()

export type Answer = readonly unknown[] | Error
export type Sent = {
  answer: Promise<Answer>
  /** The error to throw if the last statement failed and COMMIT was answered with ROLLBACK. */
  failed(error: Error): Error
}

export const asError = (error: unknown): Error => error as Error

/** The last statement failed and took the transaction with it. */
export class LastFailed extends Error {
  constructor(cause: Error) {
    super('The last statement of a transaction failed', { cause })
  }
}

export type Held = {
  client: Slot
  level: string
  /** A statement was sent. */
  isUsed: boolean
  /** The error of BEGIN, if any; undefined if it was not sent. */
  begun?: Promise<unknown>
  /** The first error of a statement of the work, which need not have been awaited. */
  failed?: unknown
  /** The only statement has committed. */
  isCommitted: boolean
  isOverdue(): boolean
  release(isBroken: boolean): void
}

/** Takes a connection for as long as a transaction may live; after that the connection is destroyed. */
export async function hold(pool: Pool, level: string): Promise<Held> {
  const client = await pool.connect()
  let overdue = false
  const timer = setTimeout(() => {
    overdue = true
    client.release(true)
  }, transactionLimitMs)
  return {
    client,
    level,
    isUsed: false,
    isCommitted: false,
    isOverdue: () => overdue,
    release: (isBroken) => {
      clearTimeout(timer)
      if (!overdue) client.release(isBroken || isWornOut(client))
    },
  }
}

/** Is not awaited, so that it goes out with the first statement; `run` checks for its failure. */
export function begin(held: Held): void {
  held.isUsed = true
  held.begun ??= held.client.query(`begin isolation level ${held.level} read write`).catch(asError)
}

export async function alone<T>(
  pool: Pool,
  held: Held,
  query: Sql,
  isOfLast: (error: unknown) => boolean,
): Promise<T | undefined> {
  held.isUsed = true
  try {
    const { rows } = await confirmed(held.client, () => pool.sendAlone(held.client, query))
    held.isCommitted = rows.length > 0
    return rows[0] as T | undefined
  } catch (error) {
    if (isOfLast(error)) throw new LastFailed(error as Error)
    const known = refused(error)
    const isLost = known instanceof ServiceError && known.data.reason === 'service_unavailable'
    throw (isLost && !isUnsent(error)) || held.isOverdue() ? unknown(known) : known
  }
}

/** Runs the work; if it or BEGIN fails, rolls back and releases the connection. */
export async function run<R>(held: Held, work: () => Promise<R>): Promise<R> {
  const { client, isOverdue, release } = held
  const own = { isOpen: true }
  try {
    const result = await enclosing.run(own, work)
    const failed = await held.begun
    if (failed instanceof Error) throw databaseRefusal(failed) ?? failed
    return result
  } catch (error) {
    const replaced = [error, await held.begun].find(takesNoWrites)
    const isBroken =
      isOverdue() ||
      replaced !== undefined ||
      (held.isUsed &&
        (await client.query('rollback').then(
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
  const { client, begun, isOverdue, release } = held
  if (begun === undefined) return release(false) as undefined
  try {
    const ended = await confirmed(client, () => client.query('commit'))
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
async function confirmed<T>(client: pg.PoolClient, commit: () => Promise<T>): Promise<T> {
  const notices = noticesOf(client)
  notices.isUnconfirmed = false
  const answer = await commit()
  if (notices.isUnconfirmed)
    throw Object.assign(new Error('the standby has not confirmed the commit'), { code: resolutionUnknown })
  return answer
}

function unknown(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error
  error.outcome = 'unknown'
  error.data.outcome = 'unknown'
  return error
}

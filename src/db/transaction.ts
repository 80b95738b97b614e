import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { refusal, ServiceError } from '../errors.ts'
import {
  databaseRefusal,
  isConflict,
  isInAborted,
  isUnsent,
  refused,
  takesNoWrites,
  withCause,
  withoutValues,
} from './failure.ts'
import { type Pool, type Queryable, queryable, transactionLimitMs } from './pool.ts'
import { isWornOut, type Sql } from './sql.ts'

/** Mean pause before a transaction is retried after a conflict. */
const conflictPauseMs = 10

export interface Transaction extends Queryable {
  /** False once a statement was sent, for a snapshot, and after a last statement that failed. */
  readonly mayBeAlone: boolean
  /** True after `alone` has committed. */
  readonly isCommitted: boolean
  /**
   * The whole transaction as one statement, which includes the last one: committed if it returns a row. Rejects
   * with `LastFailed`, and nothing is written, if `isOfLast` says that the last one is to blame.
   */
  alone<T>(query: Sql, isOfLast: (error: unknown) => boolean): Promise<T | undefined>
  /**
   * One last statement, for audit rows, sent together with COMMIT. After the commit `settled` gets its rows or
   * its error; a failure undoes the statement, never the transaction.
   */
  beforeCommit(statement: () => Sql | undefined, settled: (answer: readonly unknown[] | Error) => void): void
  /** Runs after a successful commit; dropped on rollback. If the effect fails, the error is logged. */
  afterCommit(effect: () => void | Promise<void>): void
}

export type TransactionOptions = { snapshot?: boolean | undefined }
type Work<T> = (tx: Transaction) => Promise<T>
type Last = Parameters<Transaction['beforeCommit']>
type Effect = () => void | Promise<void>

/** The running transaction; marked closed when it ends, because a promise that was not awaited may outlive it. */
const enclosing = new AsyncLocalStorage<{ isOpen: boolean }>()

export function createTransactions(pool: Pool) {
  /** True from a last statement that failed and undid its transaction until the next one that succeeds. */
  let isLastFailing = false

  return async <T>(work: Work<T>, { snapshot = false }: TransactionOptions = {}): Promise<T> => {
    if (enclosing.getStore()?.isOpen)
      throw new Error(
        'A transaction is open already, and another would wait for its locks. Work with its `db`, or join it: pass ' +
          '`within`, the argument of its work or the second argument of the handler.',
      )
    const level = snapshot ? 'repeatable read' : 'read committed'
    let isCareful = isLastFailing
    for (let isRepeat = false; ; ) {
      try {
        const how = { level, isCareful, sendLast: isCareful ? carefully : withCommit }
        return await attempt(pool, work, how)
      } catch (error) {
        if (error instanceof FailedAfterCommit) throw error.cause
        if (error instanceof LastFailed) {
          isLastFailing = true
          isCareful = true
          continue
        }
        if (!isConflict(error)) throw error
        if (isRepeat) throw withCause(refusal('service_unavailable'), error)
      }
      isRepeat = true
      // The other transaction has only just been woken: an immediate retry would collide with it again.
      await delay(conflictPauseMs * (0.5 + Math.random()))
    }
  }

  /** Does not wait, so that COMMIT goes out in the same round trip. */
  function withCommit(client: pg.PoolClient, last: Sql): Sent {
    const answer = pool.send(client, last).then(rowsOf, asError)
    return {
      answer,
      failed: (error) => (isInAborted(error) ? error : new LastFailed(error)),
    }
  }

  /** Uses a savepoint and waits: one more round trip, but a failure cannot undo the transaction. */
  async function carefully(client: pg.PoolClient, last: Sql): Promise<Sent> {
    const marked = client.query('savepoint last_statement').catch(asError)
    const answer = await pool.send(client, last).then(rowsOf, asError)
    await marked
    if (answer instanceof Error) await client.query('rollback to savepoint last_statement').catch(asError)
    else isLastFailing = false
    return { answer: Promise.resolve(answer), failed: (error) => error }
  }
}

type Answer = readonly unknown[] | Error
type Sent = {
  answer: Promise<Answer>
  /** The error to throw if the last statement failed and COMMIT was answered with ROLLBACK. */
  failed(error: Error): Error
}
type SendLast = (client: pg.PoolClient, last: Sql) => Sent | Promise<Sent>

const rowsOf = ({ rows }: pg.QueryResult): Answer => rows
const asError = (error: unknown): Error => error as Error

/** The last statement failed and took the transaction with it. */
export class LastFailed extends Error {
  constructor(cause: Error) {
    super('The last statement of a transaction failed', { cause })
  }
}

/** The work failed after it was committed as one statement; it must not run again. */
class FailedAfterCommit extends Error {
  constructor(cause: unknown) {
    super('The work failed after its commit', { cause })
  }
}

type How = { level: string; isCareful: boolean; sendLast: SendLast }

/** Runs the work in a transaction, commits it, then runs the effects. */
async function attempt<T>(pool: Pool, work: Work<T>, { level, isCareful, sendLast }: How): Promise<T> {
  const held = await hold(pool, level)
  const { client } = held
  const effects: Effect[] = []
  let last: Last | undefined
  const tx: Transaction = {
    ...queryable(async (query) => {
      if (held.isOverdue()) throw refusal('timeout')
      if (held.isCommitted) throw new Error('The transaction is committed: its only statement has run.')
      begin(held)
      return await pool.send(client, query)
    }),
    get mayBeAlone() {
      return !isCareful && level === 'read committed' && !held.isUsed
    },
    get isCommitted() {
      return held.isCommitted
    },
    alone: (query, isOfLast) => alone(pool, held, query, isOfLast),
    beforeCommit: (...given) => {
      last = given
    },
    afterCommit: (effect) => {
      effects.push(effect)
    },
  }
  try {
    const [result, statement] = await run(held, async () => {
      const result = await work(tx)
      const statement = held.isCommitted ? undefined : last?.[0]()
      if (statement) begin(held)
      return [result, statement] as const
    })
    const sent = statement && sendLast(client, statement)
    const answer = await commit(held, sent instanceof Promise ? await sent : sent)
    if (answer) last?.[1](answer)
    for (const effect of effects) await runEffect(pool, effect)
    return result
  } catch (error) {
    if (!held.isCommitted) throw error
    for (const effect of effects) await runEffect(pool, effect)
    throw new FailedAfterCommit(error)
  }
}

type Held = {
  client: pg.PoolClient
  level: string
  /** A statement was sent. */
  isUsed: boolean
  /** The error of BEGIN, if any; undefined if it was not sent. */
  begun?: Promise<unknown>
  /** The only statement has committed. */
  isCommitted: boolean
  isOverdue(): boolean
  release(isBroken: boolean): void
}

/** Takes a connection for as long as a transaction may live; after that the connection is destroyed. */
async function hold(pool: Pool, level: string): Promise<Held> {
  const client = await pool.connect().catch((error) => {
    throw withOutcome(error, 'never_began')
  })
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
function begin(held: Held): void {
  held.isUsed = true
  held.begun ??= held.client.query(`begin isolation level ${held.level} read write`).catch(asError)
}

async function alone<T>(
  pool: Pool,
  held: Held,
  query: Sql,
  isOfLast: (error: unknown) => boolean,
): Promise<T | undefined> {
  held.isUsed = true
  try {
    const { rows } = await pool.sendAlone(held.client, query)
    held.isCommitted = rows.length > 0
    return rows[0] as T | undefined
  } catch (error) {
    if (isOfLast(error)) throw new LastFailed(error as Error)
    const known = refused(error)
    const isLost = known instanceof ServiceError && known.data.reason === 'service_unavailable'
    throw (isLost && !isUnsent(error)) || held.isOverdue() ? withOutcome(known, 'unknown') : known
  }
}

/** Runs the work; if it or BEGIN fails, rolls back and releases the connection. */
async function run<R>(held: Held, work: () => Promise<R>): Promise<R> {
  const { client, isOverdue, release } = held
  const own = { isOpen: true }
  try {
    const result = await enclosing.run(own, work)
    const failed = await held.begun
    if (failed instanceof Error) throw databaseRefusal(failed) ?? failed
    return result
  } catch (error) {
    const isReplaced = takesNoWrites(error) || takesNoWrites(await held.begun)
    const isBroken =
      isOverdue() ||
      isReplaced ||
      (held.isUsed &&
        (await client.query('rollback').then(
          () => false,
          () => true,
        )))
    release(isBroken)
    if (isReplaced) throw withCause(refusal('service_unavailable'), error)
    const isUnknown = error instanceof ServiceError && error.outcome === 'unknown'
    throw isOverdue() && !isUnknown ? withCause(refusal('timeout'), error) : error
  } finally {
    own.isOpen = false
  }
}

/** Commits, and resolves to what the last statement answered. */
async function commit(
  { client, begun, isOverdue, release }: Held,
  sent: Sent | undefined,
): Promise<Answer | undefined> {
  if (begun === undefined) return release(false) as undefined
  try {
    const ended = await client.query('commit')
    const answer = await sent?.answer
    // After a failed statement COMMIT resolves too, but with ROLLBACK as its command tag.
    if (ended.command === 'ROLLBACK')
      throw answer instanceof Error && sent ? sent.failed(answer) : new Error('COMMIT ended in a rollback')
    release(false)
    return answer
  } catch (error) {
    const refused = databaseRefusal(withoutValues(error))
    release(true)
    if (refused && isUnsent(error)) throw refused
    if (isOverdue() || refused?.data.reason === 'service_unavailable')
      throw withOutcome(refused ?? withCause(refusal('service_unavailable'), error), 'unknown')
    throw refused ?? error
  }
}

async function runEffect(pool: Pool, effect: Effect): Promise<void> {
  try {
    await effect()
  } catch (error) {
    pool.onError(error, 'an effect after commit failed')
  }
}

function withOutcome(error: unknown, outcome: NonNullable<ServiceError['outcome']>): unknown {
  if (!(error instanceof ServiceError)) return error
  error.outcome = outcome
  if (outcome === 'unknown') error.data.outcome = outcome
  return error
}

import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { refusal, ServiceError } from '../errors.ts'
import {
  databaseRefusal,
  isConflict,
  isInAborted,
  isUnsent,
  takesNoWrites,
  withCause,
  withoutValues,
} from './failure.ts'
import { type Pool, type Queryable, queryable, transactionLimitMs } from './pool.ts'
import { isWornOut, type Sql } from './sql.ts'

/** Mean pause before a transaction is retried after a conflict. */
const conflictPauseMs = 10

export interface Transaction extends Queryable {
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
        return await attempt(pool, work, level, isCareful ? carefully : withCommit)
      } catch (error) {
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
class LastFailed extends Error {
  constructor(cause: Error) {
    super('The last statement of a transaction failed', { cause })
  }
}

/** Runs the work in a transaction, commits it, then runs the effects. */
async function attempt<T>(pool: Pool, work: Work<T>, level: string, sendLast: SendLast): Promise<T> {
  const held = await hold(pool)
  const { client } = held
  const effects: Effect[] = []
  let last: Last | undefined
  const tx: Transaction = {
    ...queryable(async (query) => {
      if (held.isOverdue()) throw refusal('timeout')
      return await pool.send(client, query)
    }),
    beforeCommit: (...given) => {
      last = given
    },
    afterCommit: (effect) => {
      effects.push(effect)
    },
  }
  const [result, statement] = await run(held, level, async () => {
    const result = await work(tx)
    return [result, last?.[0]()] as const
  })
  const sent = statement && sendLast(client, statement)
  const answer = await commit(held, sent instanceof Promise ? await sent : sent)
  if (answer) last?.[1](answer)
  for (const effect of effects) await runEffect(pool, effect)
  return result
}

type Held = { client: pg.PoolClient; isOverdue(): boolean; release(isBroken: boolean): void }

/** Takes a connection for as long as a transaction may live; after that the connection is destroyed. */
async function hold(pool: Pool): Promise<Held> {
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
    isOverdue: () => overdue,
    release: (isBroken) => {
      clearTimeout(timer)
      if (!overdue) client.release(isBroken || isWornOut(client))
    },
  }
}

/** Runs BEGIN and the work; if either fails, rolls back and releases the connection. */
async function run<R>(
  { client, isOverdue, release }: Held,
  level: string,
  work: () => Promise<R>,
): Promise<R> {
  // Not awaited, so that BEGIN goes out with the first statement; its failure is checked below.
  const begun = client.query(`begin isolation level ${level} read write`).catch(asError)
  const own = { isOpen: true }
  try {
    const result = await enclosing.run(own, work)
    const failed = await begun
    if (failed instanceof Error) throw databaseRefusal(failed) ?? failed
    return result
  } catch (error) {
    const isReplaced = takesNoWrites(error) || takesNoWrites(await begun)
    const isBroken =
      isOverdue() ||
      isReplaced ||
      (await client.query('rollback').then(
        () => false,
        () => true,
      ))
    release(isBroken)
    if (isReplaced) throw withCause(refusal('service_unavailable'), error)
    throw isOverdue() ? withCause(refusal('timeout'), error) : error
  } finally {
    own.isOpen = false
  }
}

/** Commits, and resolves to what the last statement answered. */
async function commit(
  { client, isOverdue, release }: Held,
  sent: Sent | undefined,
): Promise<Answer | undefined> {
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

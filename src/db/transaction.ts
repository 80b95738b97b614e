import { refusal, ServiceError } from '../errors.ts'
import { noteRepeat } from '../observe/work.ts'
import {
  type Answer,
  afterCommit,
  alone,
  begin,
  commit,
  enclosing,
  hold,
  LastFailed,
  requireOpen,
  run,
  type Sent,
} from './held.ts'
import { type Pool, type Queryable, queryable } from './pool.ts'
import { asError, isConflict, isInAborted, repeatCause, withCause } from './servers/failure.ts'
import { type Share, type SharedWrite, type Stored, sharedWrites } from './shared-write.ts'
import type { Slot } from './slots.ts'
import { type Sql, sql } from './sql.ts'
import type { Answered } from './statement.ts'

export interface Transaction extends Queryable {
  /** False once a statement was sent, for a snapshot, and after a last statement that failed. */
  mayBeAlone(): boolean
  /** True after `alone` has committed. */
  isCommitted(): boolean
  /**
   * The whole transaction as one statement, which includes the last one: committed if it returns a row. Rejects
   * with `LastFailed`, and nothing is written, if `isOfLast` says that the last one is to blame.
   */
  alone<T>(query: Sql, isOfLast: (error: unknown) => boolean): Promise<T | undefined>
  /**
   * The whole transaction as one entry of a statement that others share: committed if it returns a row. Undefined
   * if it was left out, or the statement failed: nothing was done then, and the work goes on.
   */
  share<E, V extends Stored>(by: object, entry: E, make: () => SharedWrite<E, V>): Promise<V | undefined>
  /**
   * A last statement, for audit rows; the last of several is sent together with COMMIT. After the commit `settled` gets
   * its rows or its error; a failure undoes the statement, never the transaction.
   */
  beforeCommit(statement: Sql, settled: (answer: readonly unknown[] | Error) => void): void
  /** Runs after a successful commit; dropped on rollback. If the effect fails, the error is logged. */
  afterCommit(effect: () => void | Promise<void>): void
}

export type TransactionOptions = {
  snapshot?: boolean | undefined
  /** False: the work never runs a second time. */
  repeat?: boolean | undefined
  /** Of a snapshot: the account whose `turnOf` it takes after a conflict. */
  account_id?: string | null | undefined
}
type Work<T> = (tx: Transaction) => Promise<T>
type Last = Parameters<Transaction['beforeCommit']>
type Effect = () => void | Promise<void>

/** A snapshot conflicts with every commit to a row that it changes, so several conflicts in succession are normal. */
const snapshotRepeatsMax = 8

/**
 * Sent first by a snapshot transaction that met a conflict, so that such transactions run one at a time instead of
 * aborting each other. LOCK takes no snapshot, so the snapshot begins after the wait; ordinary writes do not wait for
 * this lock.
 */
const turn = sql`lock table cell_usage in share update exclusive mode`

/**
 * The key of an advisory lock that writers of an account take before a row that they all change. Writers without a pause
 * would make every attempt of a snapshot conflict, so its turn includes this lock. Unlike LOCK, the function takes the
 * snapshot before it waits, so it is called before BEGIN.
 */
export const turnOf = (account_id: string): Sql =>
  sql`hashtextextended(${`cellkeep turn ${account_id.toLowerCase()}`}, 0)`

export function createTransactions(pool: Pool) {
  /** True from a last statement that failed and undid its transaction until the next one that succeeds. */
  let isLastFailing = false
  const share = sharedWrites(pool)

  return async <T>(
    work: Work<T>,
    { snapshot = false, repeat = true, account_id }: TransactionOptions = {},
  ): Promise<T> => {
    if (enclosing.getStore()?.isOpen)
      throw new Error(
        'A transaction is already open, and another would wait for its locks. Work with its `db`, or join it: pass ' +
          '`within`, the argument of its work or the second argument of the handler.',
      )
    // A pooler in transaction mode may give the session that holds the lock to another client.
    const locks = account_id && !pool.isPooled
    const level = snapshot ? 'repeatable read' : 'read committed'
    let isCareful = isLastFailing || !repeat
    let isNameless = false
    let isInTurn = false
    let repeatsLeft = repeat ? (snapshot ? snapshotRepeatsMax : 1) : 0
    for (;;) {
      try {
        const how = {
          level,
          isCareful,
          isNameless,
          isInTurn,
          lock: isInTurn && locks ? sql`select pg_advisory_lock(${turnOf(account_id)})` : undefined,
          share,
          carefully,
          sendLast: isCareful ? carefully : withCommit,
        }
        return await attempt(pool, work, how)
      } catch (error) {
        if (error instanceof FailedAfterCommit) throw afterCommit(error.cause)
        const isOfLast = error instanceof LastFailed
        const cause = isConflict(error) ? 'conflict' : repeatCause(isOfLast ? error.cause : error)
        if (isOfLast && !(cause && repeatsLeft > 0)) {
          isLastFailing = true
          isCareful = true
          continue
        }
        if (error instanceof ServiceError && error.outcome === 'unknown')
          pool.observer.count('db_outcome_unknown_total')
        if (cause === 'read_only') pool.primary.doubt()
        if (!cause) throw error
        if (repeatsLeft === 0)
          throw error instanceof ServiceError ? error : withCause(refusal('service_unavailable'), error)
        repeatsLeft = cause === 'conflict' ? repeatsLeft - 1 : 0
        noteRepeat()
        await pool.primary.repeats(cause)
        isNameless = cause === 'statement_name'
        isInTurn = snapshot && cause === 'conflict'
      }
    }
  }

  /** Does not wait, so that COMMIT goes out in the same round trip. */
  function withCommit(client: Slot, last: Sql): Sent {
    const answer = pool.send(client, last).then(rowsOf, asError)
    return { answer, failed: (error) => new LastFailed(error) }
  }

  /** Uses a savepoint and waits: one more round trip, but a failure cannot undo the transaction. */
  async function carefully(client: Slot, last: Sql): Promise<Sent> {
    const marked = client.query('savepoint last_statement').catch(asError)
    const answer = await pool.send(client, last).then(rowsOf, asError)
    await marked
    if (answer instanceof Error)
      await pool.command(client, 'rollback to savepoint last_statement').catch(asError)
    else isLastFailing = false
    return { answer: Promise.resolve(answer), failed: (error) => error }
  }
}

type SendLast = (client: Slot, last: Sql) => Sent | Promise<Sent>

const rowsOf = ({ rows }: Answered): Answer => rows

/** The work failed after it was committed as one statement; it must not run again. */
class FailedAfterCommit extends Error {
  constructor(cause: unknown) {
    super('The work failed after its commit', { cause })
  }
}

type How = {
  level: string
  isCareful: boolean
  isNameless: boolean
  isInTurn: boolean
  lock: Sql | undefined
  share: Share
  carefully: SendLast
  sendLast: SendLast
}

/** Runs the work in a transaction, commits it, then runs the effects. */
async function attempt<T>(pool: Pool, work: Work<T>, how: How): Promise<T> {
  const { level, isCareful } = how
  const held = hold(pool, how)
  const effects: Effect[] = []
  const lasts: Last[] = []
  // Without getters: V8 gives each object that is written down with one a shape of its own.
  const tx: Transaction = {
    ...queryable(async (query) => {
      if (tx.isCommitted()) throw new Error('The transaction is committed: its only statement has run.')
      const client = await begin(held)
      requireOpen(held)
      return await pool.send(client, query).catch((error) => {
        held.failed ??= error
        // Statements that are sent together all fail because of the first.
        throw isInAborted(error) ? held.failed : error
      })
    }),
    mayBeAlone: () => !isCareful && level === 'read committed' && !held.isUsed && held.lone === 'none',
    isCommitted: () => held.lone === 'committed',
    alone: (query, isOfLast) => alone(pool, held, query, isOfLast),
    share: (by, entry, make) => how.share(held, by, entry, make),
    beforeCommit: (...last) => {
      lasts.push(last)
    },
    afterCommit: (effect) => {
      effects.push(effect)
    },
  }
  try {
    const [result, client] = await run(held, async () => {
      if (how.isInTurn) await tx.run(turn)
      const result = await work(tx)
      return [result, lasts.length > 0 ? await begin(held) : undefined] as const
    })
    const answers: Promise<Answer>[] = []
    let sent: Sent | undefined
    for (const [nth, [statement]] of lasts.entries()) {
      const sending = (nth < lasts.length - 1 ? how.carefully : how.sendLast)(client as Slot, statement)
      sent = sending instanceof Promise ? await sending : sending
      answers.push(sent.answer)
    }
    await commit(held, sent)
    for (const [nth, answer] of (await Promise.all(answers)).entries()) lasts[nth]?.[1](answer)
    for (const effect of effects) await runEffect(pool, effect)
    return result
  } catch (error) {
    if (!tx.isCommitted()) throw error
    for (const effect of effects) await runEffect(pool, effect)
    throw new FailedAfterCommit(error)
  }
}

async function runEffect(pool: Pool, effect: Effect): Promise<void> {
  try {
    await effect()
  } catch (error) {
    pool.observer.count('effect_failures_total', 'commit')
    pool.onError(error, 'an effect after commit failed', 'effect_failed')
  }
}

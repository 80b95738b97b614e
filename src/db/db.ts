import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { refusal } from '../errors.ts'
import { databaseRefusal, isConflict, isUnsent, withCause, withoutValues } from './failure.ts'
import { pipelinedReader } from './pipeline.ts'
import { Receiving } from './receiving.ts'
import { compile, type Sql, sql } from './sql.ts'
import { timeTypes } from './types.ts'

/** No transaction of the service lives longer (contract 1, section 16); older servers have no setting for it. */
const transactionLimitMs = 30_000
const connectWaitMs = 5_000
/** Past its own limit for a statement the server has answered; one that is silent so much longer is gone. */
const silenceMs = 5_000
/** On average, between an attempt that met a conflict and its repeat. */
const conflictPauseMs = 10

export interface Queryable {
  /** All rows of a statement; `T` is the row as the column list names it. */
  rows<T>(query: Sql): Promise<T[]>
  first<T>(query: Sql): Promise<T | undefined>
  /** Runs a statement for its effect; resolves to the number of rows it touched. */
  run(query: Sql): Promise<number>
}

export interface Transaction extends Queryable {
  /** One last statement, for audit rows, that travels with COMMIT; `settled` sees its rows after it. */
  beforeCommit(statement: () => Sql | undefined, settled: (rows: readonly unknown[]) => void): void
  /** Runs after a successful commit; dropped on rollback. A failing effect is logged, never thrown. */
  afterCommit(effect: () => void | Promise<void>): void
}

export interface Database extends Queryable {
  /** A short read on a shared, pipelined connection; never for lists, they would hold up session checks. */
  point<T>(query: Sql): Promise<T[]>
  /**
   * One transaction, READ COMMITTED, or with one `snapshot` for all its statements; repeated once on deadlock
   * or serialization failure. Rejects with `service_unavailable`, `timeout`, or what `work` threw;
   * `isOutcomeUnknown` tells a lost COMMIT. Refuses to run inside the work of another: that one would hold its
   * locks and its connection meanwhile.
   */
  transaction<T>(
    work: (tx: Transaction) => Promise<T>,
    options?: { snapshot?: boolean | undefined },
  ): Promise<T>
  /**
   * Runs `work`, which takes connections of its own, while no other process of this database runs one of the
   * same name; undefined, and nothing run, where one does. Ends with the process, however that ends.
   */
  exclusively<T>(name: string, work: () => Promise<T>): Promise<T | undefined>
  close(): Promise<void>
}

export type DatabaseOptions = {
  /** node-postgres connection settings: a URL or host, user, database of the embedded server. */
  connection: pg.ClientConfig
  poolMax: number
  statementTimeoutMs: number
  onError: (error: unknown, what: string) => void
  /** Sees the text of every statement sent; used by tests that count and by metrics. */
  onStatement?: (text: string) => void
}

const outcomeUnknown = new WeakSet<object>()

/** True when the connection was lost while COMMIT was under way: it may have happened or not. */
export const isOutcomeUnknown = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && outcomeUnknown.has(error)

const unbegun = new WeakSet<object>()

/** True when there was no connection to begin a transaction on: nothing was done, nothing undone. */
export const neverBegan = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && unbegun.has(error)

/** The transaction whose work is running; closed when it ends, as a promise left behind may outlive it. */
const enclosing = new AsyncLocalStorage<{ isOpen: boolean }>()

/** Short statements over cached pages: compiling them, or fearing random reads, only makes them slow. */
export const planning = '-c jit=off -c random_page_cost=1.1'

export function openDatabase(options: DatabaseOptions): Database {
  const settings: pg.ClientConfig = {
    application_name: 'cellkeep',
    ...options.connection,
    pipeline: true,
    types: timeTypes,
    connectionTimeoutMillis: connectWaitMs,
    keepAlive: true,
    query_timeout: options.statementTimeoutMs + silenceMs,
    options: `-c TimeZone=UTC ${planning} -c statement_timeout=${options.statementTimeoutMs} -c idle_in_transaction_session_timeout=${transactionLimitMs}`,
  }
  const pool = new pg.Pool({ ...settings, max: options.poolMax, idleTimeoutMillis: 30_000 })
  pool.on('error', (error) => options.onError(error, 'an idle database connection ended'))
  // A lost connection that somebody holds speaks through his statements; unheard, its event ends the process.
  const receiving = new Receiving()
  pool.on('connect', (client) => {
    client.on('error', () => {})
    receiving.watch(client)
  })
  const reader = pipelinedReader(settings, options.onError)

  const send = async (client: Pick<pg.Client, 'query'>, query: Sql): Promise<pg.QueryResult> => {
    const compiled = compile(query)
    options.onStatement?.(compiled.text)
    try {
      return await client.query(compiled)
    } catch (error) {
      throw databaseRefusal(withoutValues(error)) ?? error
    } finally {
      receiving.done(client)
    }
  }
  const queryable = (
    client: () => Promise<pg.PoolClient>,
    done: (client: pg.PoolClient, error?: Error) => void,
  ) => {
    const result = async (query: Sql): Promise<pg.QueryResult> => {
      const held = await client()
      try {
        const answer = await send(held, query)
        done(held)
        return answer
      } catch (error) {
        done(held, error as Error)
        throw error
      }
    }
    return {
      rows: async <T>(query: Sql) => (await result(query)).rows as T[],
      first: async <T>(query: Sql) => (await result(query)).rows[0] as T | undefined,
      run: async (query: Sql) => (await result(query)).rowCount ?? 0,
    }
  }
  const connect = async (): Promise<pg.PoolClient> => {
    try {
      return await pool.connect()
    } catch (error) {
      throw databaseRefusal(error) ?? withCause(refusal('service_unavailable'), error)
    }
  }

  async function attempt<T>(work: (tx: Transaction) => Promise<T>, level: string): Promise<T> {
    const client = await connect().catch((error) => {
      unbegun.add(error)
      throw error
    })
    const effects: (() => void | Promise<void>)[] = []
    let last: { statement: () => Sql | undefined; settled: (rows: readonly unknown[]) => void } | undefined
    let overdue = false
    const timer = setTimeout(() => {
      overdue = true
      client.release(true)
    }, transactionLimitMs)
    const finish = (broken: boolean) => {
      clearTimeout(timer)
      if (!overdue) client.release(broken)
    }
    const tx: Transaction = {
      ...queryable(
        async () => {
          if (overdue) throw refusal('timeout')
          return client
        },
        () => {},
      ),
      beforeCommit: (statement, settled) => {
        last = { statement, settled }
      },
      afterCommit: (effect) => {
        effects.push(effect)
      },
    }
    // Not awaited: BEGIN travels with the first statement, and a failure of it ends the connection.
    const begun = client.query(`begin isolation level ${level}`).catch((error) => error as Error)
    const own = { isOpen: true }
    let result: T
    try {
      result = await enclosing.run(own, () => work(tx))
      const failed = await begun
      if (failed instanceof Error) throw databaseRefusal(failed) ?? failed
    } catch (error) {
      const undone = overdue
        ? true
        : await client.query('rollback').then(
            () => false,
            () => true,
          )
      finish(undone)
      throw overdue ? withCause(refusal('timeout'), error) : error
    } finally {
      own.isOpen = false
    }
    const written = await commit(client, last?.statement(), () => overdue, finish)
    if (written) last?.settled(written)
    for (const effect of effects) await runEffect(effect)
    return result
  }

  async function commit(
    client: pg.PoolClient,
    last: Sql | undefined,
    overdue: () => boolean,
    finish: (broken: boolean) => void,
  ): Promise<unknown[] | undefined> {
    const written = last === undefined ? undefined : send(client, last).catch((error) => error as Error)
    try {
      const ended = await client.query('commit')
      const answer = await written
      // COMMIT behind a failed statement resolves, as a rollback.
      if (ended.command === 'ROLLBACK') throw answer ?? new Error('COMMIT was answered with ROLLBACK')
      finish(false)
      return answer instanceof Error ? undefined : answer?.rows
    } catch (error) {
      const refused = databaseRefusal(withoutValues(error))
      finish(true)
      if (refused && isUnsent(error)) throw refused
      if (overdue() || refused?.data.reason === 'service_unavailable') {
        const unknown = refused ?? withCause(refusal('service_unavailable'), error)
        outcomeUnknown.add(unknown)
        throw unknown
      }
      throw refused ?? error
    }
  }

  async function exclusively<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
    const client = await connect()
    const ask = async (what: 'pg_try_advisory_lock' | 'pg_advisory_unlock'): Promise<boolean> =>
      (await send(client, sql`select ${sql.raw(what)}(hashtextextended(${name}, 0)) as done`)).rows[0].done
    let isHeld = false
    try {
      isHeld = await ask('pg_try_advisory_lock')
      return isHeld ? await work() : undefined
    } finally {
      const isClean = !isHeld || (await ask('pg_advisory_unlock').catch(() => false))
      client.release(!isClean)
    }
  }

  async function runEffect(effect: () => void | Promise<void>): Promise<void> {
    try {
      await effect()
    } catch (error) {
      options.onError(error, 'an effect after commit failed')
    }
  }

  return {
    ...queryable(connect, (client, error) => client.release(error !== undefined && isLost(error))),
    point: async <T>(query: Sql) => {
      const compiled = compile(query)
      options.onStatement?.(compiled.text)
      try {
        return (await reader.query(compiled)) as T[]
      } catch (error) {
        throw databaseRefusal(withoutValues(error)) ?? error
      }
    },
    transaction: async (work, { snapshot = false } = {}) => {
      const level = snapshot ? 'repeatable read' : 'read committed'
      if (enclosing.getStore()?.isOpen)
        throw new Error('A transaction was begun inside another; work with the one that is open.')
      try {
        return await attempt(work, level)
      } catch (error) {
        if (!isConflict(error)) throw error
      }
      // The other side was only just woken, and would meet a repeat that is quicker than it in the same place.
      await delay(conflictPauseMs * (0.5 + Math.random()))
      try {
        return await attempt(work, level)
      } catch (error) {
        throw isConflict(error) ? withCause(refusal('service_unavailable'), error) : error
      }
    },
    exclusively,
    close: async () => {
      await Promise.all([pool.end(), reader.close()])
    },
  }
}

const isLost = (error: Error): boolean =>
  'data' in error && (error.data as { reason: string }).reason === 'service_unavailable'

export { type Sql, sql }

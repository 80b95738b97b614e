import { nameIn } from './connection.ts'
import { type JoinedRead, joiner } from './point.ts'
import { type DatabaseOptions, openPool, type Pool, type Queryable, queryable } from './pool.ts'
import { type Sql, sql } from './sql.ts'
import { createTransactions, type Transaction, type TransactionOptions } from './transaction.ts'

/** The database as a query() method sees it: every write is refused. */
export interface ReadOnly extends Pick<Queryable, 'rows' | 'first' | 'one'> {
  /** A short read on a shared, pipelined connection. Never for lists: they would delay session checks. */
  point<T>(query: Sql): Promise<T[]>
  /** One key of a read that joins its neighbours, on the connection of the short reads. Callers share the row. */
  joined<K extends readonly (string | null)[], V>(read: JoinedRead<K, V>, key: K): Promise<V | undefined>
}

export interface Database extends Queryable, ReadOnly {
  /** For code that only reads; costs nothing extra. `rows`, `first` and `run` of the database itself may write. */
  readonly readOnly: ReadOnly
  /**
   * One transaction: READ COMMITTED, or one `snapshot` for all its statements. It is retried once after a
   * deadlock or serialization failure, and once if only its last statement failed. Rejects with
   * `service_unavailable`, `timeout`, or what `work` threw. Transactions cannot be nested: the outer one would
   * hold its locks and its connection while the inner one waits.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /**
   * Runs `work` under an advisory lock on `name`; resolves to undefined without running it if another process
   * holds the lock. `work` takes its own connections. The lock is released even if the process is killed.
   */
  exclusively<T>(name: string, work: () => Promise<T>): Promise<T | undefined>
  /** Pooled connections: open ones, idle ones among them, and requests that wait for one. */
  load(): { open: number; idle: number; waiting: number }
  close(): Promise<void>
}

export function openDatabase(options: DatabaseOptions): Database {
  const pool = openPool(options)
  const { point } = pool
  const joined = joiner(point)
  const { rows, first, one } = queryable(pool.read)
  return {
    ...queryable(pool.write),
    point,
    joined,
    readOnly: { rows, first, one, point, joined },
    transaction: createTransactions(pool),
    exclusively: (name, work) => exclusively(pool, nameIn(options.connection.schema, name), work),
    load: pool.load,
    close: pool.close,
  }
}

async function exclusively<T>(pool: Pool, name: string, work: () => Promise<T>): Promise<T | undefined> {
  const client = await pool.connectAlive()
  const lock = async (what: 'pg_try_advisory_lock' | 'pg_advisory_unlock'): Promise<boolean> =>
    (await pool.send(client, sql`select ${sql.raw(what)}(hashtextextended(${name}, 0)) as done`)).rows[0].done
  let isClean = false
  try {
    const isHeld = await lock('pg_try_advisory_lock')
    try {
      return isHeld ? await work() : undefined
    } finally {
      isClean = !isHeld || (await lock('pg_advisory_unlock').catch(() => false))
    }
  } finally {
    client.release(!isClean)
  }
}

export type { Connection } from './connection.ts'
export type { JoinedRead } from './point.ts'
export { type DatabaseOptions, planning, type Queryable } from './pool.ts'
export { LastFailed, type Transaction } from './transaction.ts'
export { type Sql, sql }

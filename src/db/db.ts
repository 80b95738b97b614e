import { type DatabaseOptions, openPool, type Pool, type Queryable, queryable } from './pool.ts'
import { type Sql, sql } from './sql.ts'
import { createTransactions, type Transaction, type TransactionOptions } from './transaction.ts'

/** What a query works with: the database refuses every write. */
export interface ReadOnly extends Pick<Queryable, 'rows' | 'first' | 'one'> {
  /** A short read on a shared, pipelined connection; never for lists, they would hold up session checks. */
  point<T>(query: Sql): Promise<T[]>
}

export interface Database extends Queryable, ReadOnly {
  /** For whatever only reads, at no cost; `rows`, `first` and `run` beside it may write. */
  readonly readOnly: ReadOnly
  /**
   * One transaction, READ COMMITTED, or with one `snapshot` for all its statements; repeated once on deadlock
   * or serialization failure, and once where only its last statement failed. Rejects with
   * `service_unavailable`, `timeout`, or what `work` threw. Refuses to run inside the work of another: that
   * one would hold its locks and its connection meanwhile.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /**
   * Runs `work`, which takes connections of its own, while no other process of this database runs one of the
   * same name; undefined, and nothing run, where one does. Ends with the process, however that ends.
   */
  exclusively<T>(name: string, work: () => Promise<T>): Promise<T | undefined>
  close(): Promise<void>
}

export function openDatabase(options: DatabaseOptions): Database {
  const pool = openPool(options)
  const point = async <T>(query: Sql) => (await pool.point(query)) as T[]
  const { rows, first, one } = queryable(pool.read)
  return {
    ...queryable(pool.write),
    point,
    readOnly: { rows, first, one, point },
    transaction: createTransactions(pool),
    exclusively: (name, work) => exclusively(pool, name, work),
    close: pool.close,
  }
}

async function exclusively<T>(pool: Pool, name: string, work: () => Promise<T>): Promise<T | undefined> {
  const client = await pool.connect()
  const ask = async (what: 'pg_try_advisory_lock' | 'pg_advisory_unlock'): Promise<boolean> =>
    (await pool.send(client, sql`select ${sql.raw(what)}(hashtextextended(${name}, 0)) as done`)).rows[0].done
  let isHeld = false
  try {
    isHeld = await ask('pg_try_advisory_lock')
    return isHeld ? await work() : undefined
  } finally {
    const isClean = !isHeld || (await ask('pg_advisory_unlock').catch(() => false))
    client.release(!isClean)
  }
}

export { type DatabaseOptions, planning, type Queryable } from './pool.ts'
export type { Transaction } from './transaction.ts'
export { type Sql, sql }

import type { Line } from './batched.ts'
import { type Clock, createClock } from './clock.ts'
import { exclusively } from './exclusively.ts'
import { joiner } from './joined.ts'
import { type DatabaseOptions, openPool, type Queryable, queryable, type ReadOnly } from './pool.ts'
import { nameIn } from './servers/connection.ts'
import type { Primary } from './servers/primary.ts'
import { openReplicas, type Replicas } from './servers/replicas.ts'
import { type Sql, sql } from './sql.ts'
import { createTransactions, type Transaction, type TransactionOptions } from './transaction.ts'

export interface Database extends Queryable, ReadOnly {
  /**
   * For methods, and all code that only reads. `rows`, `first` and `run` of the database itself may write, and its
   * `point` is the one that checks credentials: what methods ask must not hold it up.
   */
  readonly readOnly: ReadOnly
  /** What the node writes about itself; it does not wait while calls hold all connections. */
  readonly promptly: Pick<Queryable, 'one'>
  /**
   * One transaction: READ COMMITTED, or one `snapshot` for all its statements. It is retried once after a
   * deadlock, a serialization failure (a snapshot up to eight times), or the loss of the connection or primary
   * before COMMIT was sent, unless `repeat` is false; and once if only its last statement failed. Rejects with
   * `service_unavailable`, `timeout`, or what `work` threw. Transactions cannot be nested: the outer one would
   * hold its locks and its connection while the inner one waits.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /**
   * Runs `work` under an advisory lock on `name`; resolves to undefined without running it if another process
   * holds the lock. It must stop before its next batch when `lost` is aborted: another process may go on then.
   */
  exclusively<T>(name: string, work: (lost: AbortSignal) => Promise<T>): Promise<T | undefined>
  /** Bounds the calls that wait while there is no primary. */
  readonly line: Line
  /** The server that takes writes, and its state. */
  readonly primary: Pick<
    Primary,
    'session' | 'doubt' | 'repeats' | 'isOpen' | 'isAway' | 'inside' | 'trouble' | 'admission'
  >
  readonly clock: Clock
  /** Undefined without replicas, and until `useReplicas`, which is called before the first request. */
  readonly replicas: Replicas | undefined
  useReplicas(): Promise<void>
  /** Pooled connections: open ones, idle ones among them, and requests that wait for one. */
  load(): { open: number; idle: number; waiting: number }
  close(): Promise<void>
}

export function openDatabase(options: DatabaseOptions): Database {
  const clock = createClock()
  const pool = openPool(options, clock)
  const { point, pointOfMethod, primary } = pool
  const joined = joiner(pointOfMethod, { line: primary, observer: pool.observer })
  const { rows, first, one } = queryable(pool.read)
  let replicas: Replicas | undefined
  return {
    ...queryable(pool.write),
    point,
    joined,
    promptly: queryable(pool.writePromptly),
    readOnly: { rows, first, one, point: pointOfMethod, joined },
    transaction: createTransactions(pool),
    exclusively: (name, work) =>
      exclusively(primary.session, name, nameIn(options.connection.schema, name), work),
    line: primary,
    primary,
    clock,
    get replicas() {
      return replicas
    },
    useReplicas: async () => {
      replicas = await openReplicas(options, pool, clock)
    },
    load: pool.load,
    close: async () => {
      await Promise.all([pool.close(), replicas?.close()])
    },
  }
}

export type { Clock } from './clock.ts'
export { LastFailed } from './held.ts'
export type { JoinedRead } from './joined.ts'
export type { Queryable, ReadOnly } from './pool.ts'
export { briefly, type SharedWrite, type Stored } from './shared-write.ts'
export { type Transaction, turnOf } from './transaction.ts'
export { type Sql, sql }

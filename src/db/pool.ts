import type { Socket } from 'node:net'
import pg from 'pg'
import { refusal } from '../errors.ts'
import { type Connection, clientConfig } from './connection.ts'
import { databaseRefusal, explainReadOnly, refused, withCause, writeRefused } from './failure.ts'
import { pipelinedReader } from './point.ts'
import { compile, isWornOut, noteOpened, type Sql, timeTypes } from './sql.ts'

/** The longest that a transaction may live. Enforced here, as PostgreSQL before 17 has no setting for it. */
export const transactionLimitMs = 30_000
const connectWaitMs = 5_000
/** A server that is silent for so long after the statement timeout is taken for dead. */
const silenceMs = 5_000

export interface Queryable {
  /** All rows of a statement; `T` is the row type that its column list produces. */
  rows<T>(query: Sql): Promise<T[]>
  first<T>(query: Sql): Promise<T | undefined>
  /** The row of a statement that always returns one. */
  one<T>(query: Sql): Promise<T>
  /** Runs a statement for its effect; resolves to the number of affected rows. */
  run(query: Sql): Promise<number>
}

export type DatabaseOptions = {
  connection: Connection
  poolMax: number
  statementTimeoutMs: number
  onError: (error: unknown, what: string) => void
  /** Called with the text of every statement sent; for metrics and for tests that count statements. */
  onStatement?: (text: string) => void
}

/** The connections of one process. On each a statement that is declared as reading, and only that, is read-only. */
export type Pool = {
  /** Rejects with `service_unavailable`. */
  connect(): Promise<pg.PoolClient>
  /** A connection that has just answered, at the cost of a round trip. */
  connectAlive(): Promise<pg.PoolClient>
  send(client: pg.PoolClient, query: Sql): Promise<pg.QueryResult>
  /** One statement as a writing transaction of its own; rejects with the error of the driver as it is. */
  sendAlone(client: pg.PoolClient, query: Sql): Promise<pg.QueryResult>
  /** One statement that can only read. */
  read(query: Sql): Promise<pg.QueryResult>
  /** One statement that may write. */
  write(query: Sql): Promise<pg.QueryResult>
  /** One short statement that can only read, on a shared connection. */
  point<T>(query: Sql): Promise<T[]>
  onError: DatabaseOptions['onError']
  close(): Promise<void>
}

/** Statements are short and pages cached: JIT and the default cost of random reads only slow them down. */
export const planning = '-c jit=off -c random_page_cost=1.1'

export function openPool(options: DatabaseOptions): Pool {
  const { onError, onStatement } = options
  const settings = settingsOf(options)
  const pool = new pg.Pool({ ...settings, max: options.poolMax, idleTimeoutMillis: 30_000 })
  pool.on('error', (error) => onError(error, 'an idle database connection ended'))
  // pg also emits 'error' on a connection in use; without a listener Node exits.
  const receiving = new Receiving()
  pool.on('connect', (client) => {
    noteOpened(client)
    receiving.watch(client)
    client.on('error', () => {})
  })
  const reader = pipelinedReader(settings, options)

  const compiled = (query: Sql) => {
    const statement = compile(query)
    onStatement?.(statement.text)
    return statement
  }
  const connect = async (): Promise<pg.PoolClient> => {
    try {
      return await pool.connect()
    } catch (error) {
      throw databaseRefusal(error) ?? withCause(refusal('service_unavailable'), error)
    }
  }
  // An idle connection may have died without our having heard of it yet.
  const connectAlive = async (): Promise<pg.PoolClient> => {
    for (let tries = 0; ; tries++) {
      const client = await connect()
      try {
        await client.query('select')
        return client
      } catch (error) {
        client.release(true)
        if (tries >= options.poolMax) throw databaseRefusal(error) ?? error
      }
    }
  }
  const send: Pool['send'] = async (client, query) => {
    try {
      return await client.query(compiled(query))
    } catch (error) {
      throw refused(error)
    } finally {
      receiving.done(client)
    }
  }
  const read = async (query: Sql): Promise<pg.QueryResult> => {
    const client = await connect()
    const closed = setReadOnly(client, 'on')
    try {
      const answer = await send(client, query)
      client.release((await closed) instanceof Error || isWornOut(client))
      return answer
    } catch (error) {
      client.release(isLost(error) || (await closed) instanceof Error)
      return explainReadOnly(error)
    }
  }
  const sendAlone: Pool['sendAlone'] = async (client, query) => {
    // If this fails, so does the statement.
    void setReadOnly(client, 'off')
    try {
      return await client.query(compiled(query))
    } finally {
      receiving.done(client)
    }
  }
  const write = async (query: Sql): Promise<pg.QueryResult> => {
    const client = await connect()
    try {
      const answer = await sendAlone(client, query)
      client.release(isWornOut(client))
      return answer
    } catch (error) {
      const known = writeRefused(error)
      client.release(isLost(known))
      throw known
    }
  }
  return {
    connect,
    connectAlive,
    send,
    sendAlone,
    read,
    write,
    point: reader.point,
    onError,
    close: async () => {
      await Promise.all([pool.end(), reader.close()])
    },
  }
}

/** Connections whose last statement of their own was a writing one. */
const writable = new WeakSet<pg.PoolClient>()

/** Is not awaited, so that it goes out with the statement behind it; often there is nothing to do. */
function setReadOnly(client: pg.PoolClient, to: 'on' | 'off'): Promise<unknown> | undefined {
  if (writable.has(client) === (to === 'off')) return undefined
  if (to === 'off') writable.add(client)
  else writable.delete(client)
  return client.query(`set default_transaction_read_only = ${to}`).catch((error) => error)
}

const settingsOf = ({ connection, statementTimeoutMs }: DatabaseOptions): pg.ClientConfig => ({
  application_name: 'cellkeep',
  ...clientConfig(
    connection,
    `-c TimeZone=UTC ${planning} -c default_transaction_read_only=on -c statement_timeout=${statementTimeoutMs} -c idle_in_transaction_session_timeout=${transactionLimitMs}`,
  ),
  pipeline: true,
  types: timeTypes,
  connectionTimeoutMillis: connectWaitMs,
  keepAlive: true,
  query_timeout: statementTimeoutMs + silenceMs,
})

const isLost = (error: unknown): boolean =>
  typeof error === 'object' &&
  error !== null &&
  'data' in error &&
  (error.data as { reason: string }).reason === 'service_unavailable'

/** The `Queryable` methods on top of a function that runs a statement. */
export const queryable = (answer: (query: Sql) => Promise<pg.QueryResult>): Queryable => ({
  rows: async <T>(query: Sql) => (await answer(query)).rows as T[],
  first: async <T>(query: Sql) => (await answer(query)).rows[0] as T | undefined,
  one: async <T>(query: Sql) => {
    const [row] = (await answer(query)).rows
    if (row === undefined) throw new Error('A statement that always returns a row returned none.')
    return row as T
  },
  run: async (query: Sql) => (await answer(query)).rowCount ?? 0,
})

/** Bytes of large results that may be arriving at the same time, beyond which they arrive one after the other. */
const arrivingMax = 4_194_304
/** A result that is shorter never waits. */
const shortMax = 262_144

type Client = Pick<pg.Client, 'query'>
type Result = { socket: Socket; bytes: number; isPaused: boolean }

/**
 * Results on their way from the database. Each becomes objects as it arrives, several times its bytes, so the
 * large ones take turns: the one that was large first goes on, the others stay unread on their connections.
 */
class Receiving {
  readonly #results = new WeakMap<Client, Result>()
  /** Oldest first. */
  readonly #large = new Set<Result>()
  #bytes = 0

  /** To be called for each connection, once it is open. */
  watch(client: Client): void {
    const socket = streamOf(client)
    if (!socket) return
    const result: Result = { socket, bytes: 0, isPaused: false }
    this.#results.set(client, result)
    socket.on('data', (chunk: Buffer) => this.#take(result, chunk.length))
    socket.once('close', () => this.#end(result))
  }

  /** The statement that `client` ran has been answered, or never will be. */
  done(client: Client): void {
    const result = this.#results.get(client)
    if (result) this.#end(result)
  }

  #take(result: Result, length: number): void {
    result.bytes += length
    if (result.bytes <= shortMax) return
    this.#bytes += this.#large.has(result) ? length : result.bytes
    this.#large.add(result)
    const [oldest] = this.#large
    if (this.#bytes <= arrivingMax || result === oldest) return
    result.isPaused = true
    result.socket.pause()
  }

  #end(result: Result): void {
    const { bytes } = result
    result.bytes = 0
    // Its last bytes may have come just when it was paused.
    resume(result)
    if (!this.#large.delete(result)) return
    this.#bytes -= bytes
    for (const next of this.#large) {
      resume(next)
      // The oldest in any case; others while there is room.
      if (this.#bytes > arrivingMax) return
    }
  }
}

function resume(result: Result): void {
  if (result.isPaused) result.socket.resume()
  result.isPaused = false
}

/** The connection below a client, which the types of pg leave out. */
const streamOf = (client: Client): Socket | undefined =>
  (client as { connection?: { stream?: Socket } }).connection?.stream

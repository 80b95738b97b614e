import type pg from 'pg'
import type { LogEvent } from '../log/events.ts'
import { noObserver, type Observer } from '../observe/observer.ts'
import { addTime, beginStatement, currentWork } from '../observe/work.ts'
import type { Clock } from './clock.ts'
import type { JoinedRead } from './joined.ts'
import { pipelinedReader } from './point.ts'
import { Receiving } from './receiving.ts'
import type { Connection, ReplicaOptions } from './servers/connection.ts'
import {
  asError,
  explainReadOnly,
  isUnsent,
  refused,
  repeatCause,
  takesNoWrites,
  writeRefused,
} from './servers/failure.ts'
import { lostNames } from './servers/lost-names.ts'
import { openPrimary, type Primary } from './servers/primary.ts'
import { configOf, limitsOf } from './servers/session-settings.ts'
import { watchSilence } from './silence.ts'
import { openSlots, type Slot } from './slots.ts'
import { compile, nameless, type Sql } from './sql.ts'
import { type Answered, answered } from './statement.ts'
import { isWornOut, noteOpened } from './statement-names.ts'

export interface Queryable {
  /** All rows of a statement; `T` is the row type that its column list produces. */
  rows<T>(query: Sql): Promise<T[]>
  first<T>(query: Sql): Promise<T | undefined>
  /** The row of a statement that always returns one. */
  one<T>(query: Sql): Promise<T>
  /** Runs a statement for its effect; resolves to the number of affected rows. */
  run(query: Sql): Promise<number>
}

/** The database as a query() method sees it: every write is refused. */
export interface ReadOnly extends Pick<Queryable, 'rows' | 'first' | 'one'> {
  /**
   * A short read on a shared, pipelined connection. Never for lists: they would delay other short reads. `shared` names
   * one that many requests share.
   */
  point<T>(query: Sql, shared?: string): Promise<T[]>
  /** One key of a read that joins its neighbours, on the connection of the short reads. Callers share the row. */
  joined<K extends readonly (string | null)[], V>(read: JoinedRead<K, V>, key: K): Promise<V | undefined>
}

export type DatabaseOptions = {
  connection: Connection
  poolMax: number
  statementTimeoutMs: number
  /** How long a call may wait for a primary. */
  waitMs?: number
  /** False: statements are not prepared under a name, as poolers lose names. */
  hasNames?: boolean
  /** `event`: the word of the log, by default `db_lost`. */
  onError: (error: unknown, what: string, event?: LogEvent) => void
  /** Called with the text of every statement sent; for tests that count statements. */
  onStatement?: (text: string) => void
  observer?: Observer
  /** Standbys that may answer reads. */
  replicas?: ReplicaOptions
}

/** The connections of one process. A connection is read-only for statements declared as reads, and only for these. */
export type Pool = {
  /** Rejects with `service_unavailable`. */
  connect(): Promise<Slot>
  send(slot: Slot, query: Sql): Promise<Answered>
  /** A command that ends a transaction or a part of it; rejects with the error of the driver as it is. */
  command(slot: Slot, text: string): Promise<pg.QueryResult>
  /**
   * One statement as a writing transaction of its own; rejects with the error of the driver as it is. `shared` names
   * one that several requests share.
   */
  sendAlone(slot: Slot, query: Sql, shared?: string): Promise<Answered>
  /** One statement that can only read. */
  read(query: Sql): Promise<Answered>
  /** One statement that may write. */
  write(query: Sql): Promise<Answered>
  /** The same for the node itself: it does not wait while calls hold all connections. */
  writePromptly(query: Sql): Promise<Answered>
  /** One short statement that can only read, on a shared connection; `shared` names one that many requests share. */
  point<T>(query: Sql, shared?: string): Promise<T[]>
  /** The same for the handler of a method. */
  pointOfMethod<T>(query: Sql, shared?: string): Promise<T[]>
  load(): { open: number; idle: number; waiting: number }
  /** Behind a pooler in transaction mode. */
  isPooled: boolean
  primary: Primary
  receiving: Receiving
  noteLostName(error: unknown): void
  onError: DatabaseOptions['onError']
  observer: Observer
  close(): Promise<void>
}

export function openPool(options: DatabaseOptions, clock: Clock): Pool {
  const { connection, onError, onStatement, waitMs = 5_000, hasNames = true, observer = noObserver } = options
  const primary = openPrimary({
    connection,
    config: (one) => configOf(one, options),
    limits: limitsOf(options),
    clock,
    waitMs,
    onError,
    observer,
    isBusy: () => slots.isBusy() || reader.isBusy(),
    idle: () => slots.idle(),
    hasOpen: () => slots.load().open > 0,
  })
  const receiving = new Receiving()
  const isPooled = connection.direct !== undefined
  const silence = watchSilence(primary, { isPooled })
  const slots = openSlots(primary, {
    max: options.poolMax,
    waitMs,
    onOpen: (slot) => {
      noteOpened(slot)
      receiving.watch(slot)
    },
    onError: (error) => onError(error, 'an idle database connection ended'),
  })
  const noteLostName = lostNames(onError)
  const reader = pipelinedReader(primary, {
    onError,
    isPooled,
    hasNames,
    noteLostName,
    onStatement,
    observer,
    silence,
  })

  const take = async (): Promise<Slot> => {
    const began = performance.now()
    try {
      return await slots.take(currentWork()?.isRoute)
    } finally {
      addTime(currentWork(), 'db_wait_ms', began)
    }
  }
  /** Rejects with the error of the driver as it is. */
  const sendRaw = async (slot: Sender, query: Sql, shared?: string): Promise<Answered> => {
    const statement = hasNames && !slot.isNameless ? compile(query) : nameless(query)
    onStatement?.(statement.text)
    const end = beginStatement(observer, shared)
    silence.asked(slot)
    try {
      return await answered(slot, statement)
    } catch (error) {
      noteLostName(error)
      throw error
    } finally {
      end()
      silence.answered(slot)
      receiving.done(slot)
    }
  }
  const send: Pool['send'] = (slot, query) =>
    sendRaw(slot, query).catch((error) => {
      throw refused(error)
    })
  const command: Pool['command'] = (slot, text) => {
    silence.asked(slot)
    return slot.query(text).finally(() => silence.answered(slot))
  }
  const readOn = async (slot: Slot, query: Sql): Promise<Answered> => {
    const closed = isPooled ? slot.query('begin read only').catch(asError) : setReadOnly(slot, true)
    const sent = send(slot, query)
    const ended = isPooled ? slot.query('commit').catch(asError) : undefined
    try {
      const answer = await sent
      slot.release((await closed) instanceof Error || (await ended) instanceof Error || isWornOut(slot))
      return answer
    } catch (error) {
      const hasFailed = (await closed) instanceof Error || (await ended) instanceof Error
      slot.release(repeatCause(error) !== undefined || hasFailed)
      throw error
    }
  }
  const read = async (query: Sql): Promise<Answered> => {
    try {
      return await readOn(await take(), query)
    } catch (error) {
      const cause = repeatCause(error)
      if (cause !== 'lost' && cause !== 'statement_name') return explainReadOnly(error)
      await primary.repeats(cause)
      const slot = await take()
      slot.isNameless = cause === 'statement_name'
      return await readOn(slot, query).catch(explainReadOnly)
    }
  }
  const sendAlone: Pool['sendAlone'] = (slot, query, shared) => {
    // If this fails, so does the statement.
    if (!isPooled) void setReadOnly(slot, false)
    return sendRaw(slot, query, shared)
  }
  const write = async (query: Sql, isNameless = false, isRepeat = false): Promise<Answered> => {
    const slot = await take()
    slot.isNameless = isNameless
    try {
      const answer = await sendAlone(slot, query)
      slot.release(isWornOut(slot))
      return answer
    } catch (error) {
      const cause = repeatCause(error)
      slot.release(cause !== undefined)
      if (takesNoWrites(error)) primary.doubt()
      // A statement that was sent may have been carried out.
      if (!cause || isRepeat || (cause === 'lost' && !isUnsent(error))) throw writeRefused(error)
      await primary.repeats(cause)
      return await write(query, cause === 'statement_name', true)
    }
  }
  const writePromptly = async (query: Sql): Promise<Answered> => {
    const isFree = slots.load().idle > 0
    const client = isFree ? undefined : await primary.connect().catch(() => undefined)
    if (!client) return await write(query)
    try {
      return await sendRaw(client, query)
    } catch (error) {
      throw writeRefused(error)
    } finally {
      void client.end().catch(() => {})
    }
  }
  return {
    connect: take,
    send,
    command,
    sendAlone,
    read,
    write: (query) => write(query),
    writePromptly,
    point: reader.point,
    pointOfMethod: reader.pointOfMethod,
    load: slots.load,
    isPooled,
    primary,
    receiving,
    noteLostName,
    onError,
    observer,
    close: async () => {
      silence.end()
      primary.close()
      await Promise.all([slots.close(), reader.close()])
    },
  }
}

type Sender = pg.Client & Partial<Pick<Slot, 'isNameless'>>

/** Not awaited, so that it shares the round trip of the next statement; often there is nothing to do. */
function setReadOnly(slot: Slot, isReadOnly: boolean): Promise<unknown> | undefined {
  if (slot.isReadOnly === isReadOnly) return undefined
  slot.isReadOnly = isReadOnly
  return slot.query(`set default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`).catch(asError)
}

/** The `Queryable` methods on top of a function that runs a statement. */
export const queryable = (answer: (query: Sql) => Promise<Answered>): Queryable => ({
  rows: async <T>(query: Sql) => (await answer(query)).rows as T[],
  first: async <T>(query: Sql) => (await answer(query)).rows[0] as T | undefined,
  one: async <T>(query: Sql) => {
    const [row] = (await answer(query)).rows
    if (row === undefined) throw new Error('A statement that always returns a row returned none.')
    return row as T
  },
  run: async (query: Sql) => (await answer(query)).rowCount ?? 0,
})

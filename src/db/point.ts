import type pg from 'pg'
import type { Observer } from '../observe/observer.ts'
import { beginStatement } from '../observe/work.ts'
import { cut, farewell } from './servers/dial.ts'
import { explainReadOnly, refused, repeatCause, unavailable } from './servers/failure.ts'
import type { Primary } from './servers/primary.ts'
import type { Silence } from './silence.ts'
import { compile, nameless, type Sql } from './sql.ts'
import { answered } from './statement.ts'
import { isWornOut, noteOpened } from './statement-names.ts'

type ReaderOptions = {
  onError(error: unknown, what: string): void
  onStatement?: ((text: string) => void) | undefined
  noteLostName(error: unknown): void
  /** True: session settings are not kept, so each read is a transaction. */
  isPooled: boolean
  hasNames: boolean
  observer: Observer
  silence: Silence
}

/** The place of one shared connection. */
type Shared = {
  opened: Promise<pg.Client> | undefined
  /** The connection once it is open. */
  client: pg.Client | undefined
  /** Those that wait for their answers, the oldest first. */
  reads: Set<{ began: number }>
  refusedAt: number
}

type Read = { query: Sql; shared: string | undefined; isOfMethod: boolean }

/** For this long after a refused attempt to connect, only the other connections are used. */
const refusedMs = 100
/** A connection whose oldest read has waited for this long is avoided. */
const heldUpMs = 50

/**
 * The plan of a read by keys is the same for all keys. By default PostgreSQL would plan each read anew, which takes
 * four times as long as the read. A kept plan must be right for large tables too, however small they were when it was
 * made.
 */
const ownSettings = `set default_transaction_read_only = on; set plan_cache_mode = force_generic_plan;
  set enable_seqscan = off`

/**
 * Point reads on shared, pipelined connections. A lost connection rejects the reads in flight on it, which are
 * repeated once; the next read opens a new one. Those of methods keep to one connection, so that a locked table, which
 * holds up all reads behind the first of it, leaves the other one to credentials.
 */
export function pipelinedReader(primary: Primary, options: ReaderOptions) {
  const { onStatement, noteLostName, isPooled, hasNames, observer, silence } = options
  const connections = openShared(primary, options)
  let underWay = 0

  const read = async <T>({ query, shared, isOfMethod }: Read, isNamed: boolean): Promise<T[]> => {
    const statement = isNamed ? compile(query) : nameless(query)
    onStatement?.(statement.text)
    const end = beginStatement(observer, shared)
    const slot = connections.choose(isOfMethod)
    const waiting = { began: performance.now() }
    slot.reads.add(waiting)
    try {
      const client = await connections.connected(slot).catch((error) => {
        throw unavailable(error)
      })
      if (underWay === 0) primary.alive()
      underWay += 1
      silence.asked(client)
      try {
        const begun = isPooled && client.query('begin read only')
        const sent = answered(client, statement)
        if (!begun) {
          const { rows } = await sent
          // A query has begun a transaction, in which others would read an older state.
          if (client.getTransactionStatus() !== 'I') cut(client)
          return rows as T[]
        }
        return (await Promise.all([sent, begun, client.query('commit')]))[0].rows as T[]
      } catch (error) {
        noteLostName(error)
        throw refused(error)
      } finally {
        underWay -= 1
        silence.answered(client)
        primary.alive()
      }
    } finally {
      slot.reads.delete(waiting)
      end()
    }
  }

  const point = async <T>(one: Read): Promise<T[]> => {
    try {
      return await read<T>(one, hasNames)
    } catch (error) {
      const cause = repeatCause(error)
      if (cause !== 'lost' && cause !== 'statement_name') return explainReadOnly(error)
      await primary.repeats(cause)
      return await read<T>(one, hasNames && cause !== 'statement_name').catch(explainReadOnly)
    }
  }
  return {
    isBusy: () => underWay > 0,
    point: <T>(query: Sql, shared?: string) => point<T>({ query, shared, isOfMethod: false }),
    pointOfMethod: <T>(query: Sql, shared?: string) => point<T>({ query, shared, isOfMethod: true }),
    close: connections.close,
  }
}

/** The connections that reads share, each opened when a read needs it. */
function openShared(primary: Primary, { isPooled, onError }: Pick<ReaderOptions, 'isPooled' | 'onError'>) {
  const slot = (): Shared => ({
    opened: undefined,
    client: undefined,
    reads: new Set(),
    refusedAt: -Infinity,
  })
  // Enough for short reads: a pipelined connection sends the next one without waiting for an answer.
  const [first, second] = [slot(), slot()]
  /** Connections that are being asked whether they may still be used. */
  const asked = new WeakMap<pg.Client, Promise<boolean>>()
  let closed = false

  const open = (slot: Shared): Promise<pg.Client> => {
    const drop = () => {
      if (slot.opened === opened) clear(slot)
    }
    const opened: Promise<pg.Client> = primary.connect().then(
      (client) => {
        if (slot.opened === opened) slot.client = client
        noteOpened(client)
        client.once('error', (error) => {
          drop()
          onError(error, 'a reading database connection ended')
        })
        client.on('end', drop)
        if (!isPooled) client.query(ownSettings).catch(drop)
        return client
      },
      (error) => {
        slot.refusedAt = performance.now()
        drop()
        throw error
      },
    )
    slot.opened = opened
    return opened
  }
  const clear = (slot: Shared): void => {
    slot.opened = undefined
    slot.client = undefined
  }
  /**
   * The least busy connection, but for methods the second one. No read waits until that is open, as the server may
   * refuse it.
   */
  const choose = (isOfMethod: boolean): Shared => {
    const late = performance.now() - heldUpMs
    const load = ({ reads }: Shared): number => {
      for (const { began } of reads) return reads.size + (began < late ? 1_000 : 0)
      return 0
    }
    const best = isOfMethod || load(second) < load(first) ? second : first
    if (best.client) return best
    const open = [first, second].find(({ client }) => client)
    if (open === undefined) return best
    if (best.opened === undefined && performance.now() - best.refusedAt > refusedMs)
      connected(best).catch(() => {})
    return open
  }

  /** Takes a connection out of use. */
  const retire = (client: pg.Client, slot: Shared, opened: Promise<pg.Client>): void => {
    if (slot.opened !== opened) return
    clear(slot)
    // Deferred, so that reads that awaited this connection can still send; `end` waits for their answers.
    setImmediate(() => client.end().catch(() => {}))
  }

  const connected = async (slot: Shared): Promise<pg.Client> => {
    for (;;) {
      if (closed) throw new Error('client was closed')
      const opened = slot.opened ?? open(slot)
      const client = await opened
      if (isWornOut(client)) retire(client, slot, opened)
      if (primary.isCertain(client)) return client
      // Asked, not replaced: there may be no new connections while the open ones still work.
      const fit =
        asked.get(client) ?? primary.isStillFit(client, 'reader').finally(() => asked.delete(client))
      asked.set(client, fit)
      if (await fit) return client
      if (slot.opened === opened) clear(slot)
    }
  }

  return {
    choose,
    connected,
    close: async (): Promise<void> => {
      closed = true
      await Promise.all(
        [first, second].map(async (slot) => {
          const client = await slot.opened?.catch(() => undefined)
          if (client) await farewell(client, () => slot.reads.size > 0)
        }),
      )
    },
  }
}

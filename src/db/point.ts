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

/** The place of one shared connection, and how many reads on it wait for their answers. */
type Shared = {
  opened: Promise<pg.Client> | undefined
  /** The connection once it is open. */
  client: pg.Client | undefined
  reads: number
  refusedAt: number
}

/** For this long after a refused attempt to connect, only the other connection is used. */
const refusedMs = 100

/**
 * The plan of a read by keys is the same for all keys. By default PostgreSQL would plan each read anew, which takes
 * four times as long as the read. A kept plan must be right for large tables too, however small they were when it was
 * made.
 */
const ownSettings = `set default_transaction_read_only = on; set plan_cache_mode = force_generic_plan;
  set enable_seqscan = off`

/**
 * Point reads on shared, pipelined connections. A lost connection rejects the reads in flight on it, which are
 * repeated once; the next read opens a new one. Methods have one connection and the service itself has the other: a read
 * that waits for a locked table holds up those behind it, but those of methods never hold up the check of credentials.
 */
export function pipelinedReader(primary: Primary, options: ReaderOptions) {
  const { onStatement, noteLostName, isPooled, hasNames, observer, silence } = options
  const connections = openShared(primary, options)
  let underWay = 0

  const read = async <T>(own: Shared, query: Sql, isNamed: boolean, shared?: string): Promise<T[]> => {
    const statement = isNamed ? compile(query) : nameless(query)
    onStatement?.(statement.text)
    const end = beginStatement(observer, shared)
    const slot = connections.choose(own)
    slot.reads += 1
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
      slot.reads -= 1
      end()
    }
  }

  const pointOn =
    (own: Shared) =>
    async <T>(query: Sql, shared?: string): Promise<T[]> => {
      try {
        return await read<T>(own, query, hasNames, shared)
      } catch (error) {
        const cause = repeatCause(error)
        if (cause !== 'lost' && cause !== 'statement_name') return explainReadOnly(error)
        await primary.repeats(cause)
        return await read<T>(own, query, hasNames && cause !== 'statement_name', shared).catch(
          explainReadOnly,
        )
      }
    }
  return {
    isBusy: () => underWay > 0,
    point: pointOn(connections.ofService),
    pointOfMethod: pointOn(connections.ofMethods),
    close: connections.close,
  }
}

/**
 * The connections that reads share, each opened when a read needs it. One each is enough for short reads: a pipelined
 * connection sends the next one without waiting for an answer.
 */
function openShared(primary: Primary, { isPooled, onError }: Pick<ReaderOptions, 'isPooled' | 'onError'>) {
  const slot = (): Shared => ({
    opened: undefined,
    client: undefined,
    reads: 0,
    refusedAt: -Infinity,
  })
  const [ofService, ofMethods] = [slot(), slot()]
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
  /** The connection of its own, or the other one until that is open: the server may refuse it. */
  const choose = (own: Shared): Shared => {
    const other = own === ofService ? ofMethods : ofService
    if (own.client || !other.client) return own
    if (own.opened === undefined && performance.now() - own.refusedAt > refusedMs)
      connected(own).catch(() => {})
    return other
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
    ofService,
    ofMethods,
    choose,
    connected,
    close: async (): Promise<void> => {
      closed = true
      await Promise.all(
        [ofService, ofMethods].map(async (slot) => {
          const client = await slot.opened?.catch(() => undefined)
          if (client) await farewell(client, () => slot.reads > 0)
        }),
      )
    },
  }
}

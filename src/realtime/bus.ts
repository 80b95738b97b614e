import { AsyncResource } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { type Connection, nameIn } from '../db/servers/connection.ts'
import { createLink, type LinkOptions } from './bus-link.ts'
import { encodeSignal, isEmpty, merged, type Signal, signalDecoder, sizeOf } from './committed.ts'
import { Echo } from './echo.ts'

/**
 * Signals between the processes on one database, by LISTEN and NOTIFY on a connection of their own. Inside
 * mutations, the commit lock of NOTIFY would serialise the whole cluster. A signal is only a hint to look at the
 * database: losing one costs time, never correctness.
 */
export type Bus = {
  /** Queues a signal for the other nodes; queued signals are sent as one. Never throws or waits. */
  send(signal: Signal): void
  /** Listens to the other nodes; resolves when connected, or when the first attempt failed. */
  listen(heard: Heard): Promise<void>
  /** Connected, and what it sends to itself arrives. */
  readonly isUp: boolean
  /** Sends queued signals if the database answers soon, then disconnects. */
  close(): Promise<void>
}

type Heard = {
  signal(signal: Signal): void
  /** The connection was lost for a while: signals may be missing. */
  gap(): void
}

const sendText = 'select pg_notify($2, payload) from unnest($1::text[]) as payload'

/** Min time between two notifications, so that many small mutations share one. */
const restMs = 20
/** The same after one that may be lost. */
const againMs = 500
/** How long a shutdown waits for an unreachable database. */
const farewellMs = 2_000

type BusDeps = Pick<LinkOptions, 'session' | 'log' | 'observer' | 'warnings'> & {
  connection: Connection
  /** The id of this node, which signs its signals. */
  node: string
}

export function createBus({ connection, session, log, node, observer, warnings }: BusDeps): Bus {
  const channel = nameIn(connection.schema, 'cellkeep')
  let heard: Heard | undefined
  let waiting: Signal | undefined
  /** The size of the largest signal of those that wait as one. */
  let largest = 0
  let sending: Promise<void> | undefined
  /** Aborted on close: no more rests, queued signals go at once. */
  const leaving = new AbortController()
  const ended = new AbortController()

  const decode = signalDecoder(node, (signal) => {
    observer.count('bus_signals_total', 'heard', signal.gap ? 'overflow' : 'ok')
    heard?.signal(signal)
    if (signal.gap) heard?.gap()
  })
  const echo = new Echo(node, channel)
  const hear = (payload: string): void => {
    echo.hear(payload)
    decode(payload)
  }
  const link = createLink({
    ...{ session, channel, log, observer, warnings, ended: ended.signal, hear },
    echo: (client) => echo.of(client),
  })

  // Bound here, so that the async context of no single request is used: many share what is sent.
  const start: () => void = AsyncResource.bind(() => {
    sending ??= flush().finally(() => {
      sending = undefined
      // A signal may have been queued after the last check.
      if (waiting && !ended.signal.aborted) start()
    })
  })

  /** Sends until the queue is empty. */
  async function flush(): Promise<void> {
    while (waiting && !ended.signal.aborted) {
      const ready = await link.connected().catch(() => undefined)
      if (!ready) {
        if (!link.isListening) return drop('the database cannot be reached')
        await link.restored()
        if (ended.signal.aborted) return drop('the database was away when the process ended')
        continue
      }
      const [signal, bound] = [waiting, largest]
      const payloads = encodeSignal(node, signal)
      let rest = { ms: restMs, unless: leaving.signal }
      waiting = undefined
      const sent = () => ready.query({ name: 'signal', text: sendText, values: [payloads, channel] })
      try {
        await (observer.tracer?.span('bus', { 'cellkeep.payloads': payloads.length }, sent) ?? sent())
        observer.count('bus_signals_total', 'sent', 'ok')
      } catch (error) {
        observer.count('bus_signals_total', 'sent', 'lost')
        log.warn(
          { event: 'signals_lost', err: error },
          'a signal to other nodes may be lost; what it closes is sent again',
        )
        sendAgain(signal, bound)
        rest = { ms: againMs, unless: ended.signal }
      }
      await delay(rest.ms, undefined, { signal: rest.unless }).catch(() => {})
    }
  }

  /**
   * The signal may have arrived. Closing twice does no harm, but no notification may arrive twice. `bound`: the size of
   * the largest signal merged into it; with its own, what waits would grow with each loss.
   */
  function sendAgain(signal: Signal, bound: number): void {
    const again = { ...signal, notifications: [] }
    if (sizeOf(again) === 0 && !signal.gap) return
    largest = Math.max(waiting ? largest : 0, Math.min(bound, sizeOf(again)))
    waiting = waiting ? merged(again, waiting, largest) : again
  }

  function drop(why: string): void {
    waiting = undefined
    observer.count('bus_signals_total', 'sent', 'lost')
    log.warn(
      { event: 'signals_lost' },
      `a signal to other nodes is lost because ${why}; they find out within 30 s`,
    )
  }

  return {
    send: (signal) => {
      if (ended.signal.aborted || isEmpty(signal)) return
      largest = Math.max(waiting ? largest : 0, sizeOf(signal))
      waiting = merged(waiting, signal, largest)
      start()
    },
    get isUp() {
      return link.isUp
    },
    listen: (by) => {
      heard = by
      return link.listen(() => by.gap())
    },
    close: async () => {
      leaving.abort()
      const limit = delay(farewellMs, undefined, { ref: false })
      await Promise.race([sending, limit])
      ended.abort()
      await Promise.race([Promise.all([sending, link.reconnecting]), limit])
      await Promise.race([link.disconnect(), limit])
    },
  }
}

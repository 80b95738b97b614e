import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Connection, clientConfig, nameIn } from '../db/connection.ts'
import type { Log } from '../log/log.ts'
import { encodeSignal, isEmpty, merged, type Signal, signalDecoder } from './committed.ts'

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
  /** Sends queued signals, if that is possible soon, and disconnects. */
  close(): Promise<void>
}

export type Heard = {
  signal(signal: Signal): void
  /** The connection was lost for a while: signals may be missing. */
  gap(): void
}

const sendText = 'select pg_notify($2, payload) from unnest($1::text[]) as payload'

/** Min time between two notifications, so that many small mutations share one. */
const restMs = 20
const retryMs = { first: 100, max: 5_000 }
/** How often the connection is checked. */
const pingMs = 15_000
const answerMs = 5_000
/** How long a shutdown waits for an unreachable database. */
const farewellMs = 2_000

export function createBus({ connection, log }: { connection: Connection; log: Log }): Bus {
  const channel = nameIn(connection.schema, 'cellkeep')
  const node = randomBytes(8).toString('hex')
  let heard: Heard | undefined
  let waiting: Signal | undefined
  let sending: Promise<void> | undefined
  /** Aborted on close: no more rests, queued signals go at once. */
  const leaving = new AbortController()
  const ended = new AbortController()

  const hear = signalDecoder(node, (signal) => {
    heard?.signal(signal)
    if (signal.gap) heard?.gap()
  })
  const link = createLink({ connection, channel, log, ended: ended.signal, hear })

  function start(): void {
    sending ??= flush().finally(() => {
      sending = undefined
      // A signal may have been queued after the last check.
      if (waiting && !ended.signal.aborted) start()
    })
  }

  /** Sends until the queue is empty. A failed batch is dropped: it may have arrived, and none may arrive twice. */
  async function flush(): Promise<void> {
    while (waiting) {
      const ready = await link.connected().catch(() => undefined)
      if (!ready) {
        if (!link.isListening) return drop('the database cannot be reached')
        await link.restored()
        if (ended.signal.aborted) return drop('the database was away when the process ended')
        continue
      }
      const payloads = encodeSignal(node, waiting)
      waiting = undefined
      try {
        await ready.query({ name: 'signal', text: sendText, values: [payloads, channel] })
      } catch (error) {
        log.warn({ err: error }, 'a signal to other nodes is lost; they find out within 30 s')
      }
      await delay(restMs, undefined, { signal: leaving.signal }).catch(() => {})
    }
  }

  function drop(why: string): void {
    waiting = undefined
    log.warn(`a signal to other nodes is lost, as ${why}; they find out within 30 s`)
  }

  return {
    send: (signal) => {
      if (ended.signal.aborted || isEmpty(signal)) return
      waiting = merged(waiting, signal)
      start()
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

type LinkOptions = {
  connection: Connection
  channel: string
  log: Log
  /** Aborted when reconnecting must stop. */
  ended: AbortSignal
  /** Called with every notification. */
  hear(payload: string): void
}

/** The single connection of a bus: opened on demand and, once it listens, reopened whenever it is lost. */
type Link = {
  connected(): Promise<pg.Client>
  /** Resolves when a lost connection is back, or when `ended` is aborted. */
  restored(): Promise<void>
  /** Listens from now on; `gap` is called after every reconnection. */
  listen(gap: () => void): Promise<void>
  readonly isListening: boolean
  /** The attempt to reconnect that is under way, if any. */
  readonly reconnecting: Promise<void> | undefined
  disconnect(): Promise<void>
}

function createLink({ connection, channel, log, ended, hear }: LinkOptions): Link {
  let onGap: (() => void) | undefined
  let client: Promise<pg.Client> | undefined
  let reconnecting: Promise<void> | undefined
  let ping: NodeJS.Timeout | undefined

  const connected = (): Promise<pg.Client> => {
    if (client) return client
    const opened: Promise<pg.Client> = open(() => {
      if (client !== opened) return
      client = undefined
      if (onGap && !ended.aborted) void restored()
    })
    client = opened
    return opened
  }

  async function open(onLost: () => void): Promise<pg.Client> {
    const fresh = new pg.Client({
      application_name: 'cellkeep bus',
      // Signals needn't be durable: they don't survive a server crash anyway.
      ...clientConfig(connection, '-c synchronous_commit=off -c idle_session_timeout=0'),
      pipeline: true,
      keepAlive: true,
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
    })
    fresh.on('error', onLost)
    fresh.on('end', onLost)
    fresh.on('notification', ({ payload }) => payload && hear(payload))
    try {
      await fresh.connect()
      if (onGap) await fresh.query(`listen ${channel}`)
      return fresh
    } catch (error) {
      onLost()
      void fresh.end().catch(() => {})
      throw error
    }
  }

  const restored = (): Promise<void> => {
    reconnecting ??= reconnect()
    return reconnecting
  }

  async function reconnect(): Promise<void> {
    log.warn(
      'the connection for signals between nodes is lost; live connections are checked every 30 s meanwhile',
    )
    for (let wait = retryMs.first; !ended.aborted; wait = Math.min(2 * wait, retryMs.max)) {
      await delay(wait * (0.5 + Math.random()), undefined, { signal: ended }).catch(() => {})
      if (ended.aborted) break
      const isBack = await connected().then(
        () => true,
        () => false,
      )
      if (!isBack) continue
      log.info('the connection for signals between nodes is back')
      onGap?.()
      break
    }
    reconnecting = undefined
  }

  function check(): void {
    void client
      ?.then(async (asked) => {
        await asked.query('select 1').catch(() => asked.end())
      })
      .catch(() => {})
  }

  return {
    connected,
    restored,
    listen: async (gap) => {
      onGap = gap
      ping = setInterval(check, pingMs).unref()
      // A connection opened for sending doesn't listen.
      const before = client
      client = undefined
      await before?.then((sender) => sender.end()).catch(() => {})
      await connected().catch(() => void restored())
    },
    get isListening() {
      return onGap !== undefined
    },
    get reconnecting() {
      return reconnecting
    },
    disconnect: async () => {
      clearInterval(ping)
      const last = client
      client = undefined
      await last?.then((one) => one.end()).catch(() => {})
    },
  }
}

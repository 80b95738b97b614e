import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Log } from '../log/log.ts'
import { encodeSignal, isEmpty, isUrgent, merged, type Signal, signalDecoder } from './signals.ts'

/**
 * Signals between the processes on one database, over LISTEN and NOTIFY on a connection of its own: inside a
 * mutation the commit lock of NOTIFY would serialise the whole cluster. A signal is only a hint to look: one that
 * is lost costs time, never correctness (contract 1, section 10, rule 7).
 */
export type Bus = {
  /** Queues a signal for the other nodes; what waits goes as one. Never throws, never waits. */
  send(signal: Signal): void
  /** From now on hears the other nodes; resolves when it does, or when the first attempt failed. */
  listen(heard: Heard): Promise<void>
  /** Sends what waits, where that is possible soon, and disconnects. */
  close(): Promise<void>
}

export type Heard = {
  signal(signal: Signal): void
  /** It was deaf for a while: signals may be lost. */
  gap(): void
}

const channel = 'cellkeep'
const sendText = `select pg_notify('${channel}', payload) from unnest($1::text[]) as payload`

/**
 * Between two sendings, so that many small mutations do not become as many notifications. What somebody waits for
 * cuts the longer rest short (`isUrgent`).
 */
const restMs = { short: 10, long: 50 }
const retryMs = { first: 100, most: 5_000 }
/** A connection that is silent this long is asked whether it lives. */
const pingMs = 15_000
const answerMs = 5_000
/** How long a process that ends waits for a database that is away. */
const farewellMs = 2_000

export function createBus({ connection, log }: { connection: pg.ClientConfig; log: Log }): Bus {
  const node = randomBytes(8).toString('hex')
  let heard: Heard | undefined
  let client: Promise<pg.Client> | undefined
  let waiting: Signal | undefined
  let sending: Promise<void> | undefined
  let hurry: (() => void) | undefined
  let reconnecting: Promise<void> | undefined
  let ping: NodeJS.Timeout | undefined
  /** No more rests: what waits goes at once. */
  const leaving = new AbortController()
  const ended = new AbortController()

  const decode = signalDecoder(node, (signal) => {
    heard?.signal(signal)
    if (signal.gap) heard?.gap()
  })

  /** The one connection, made where there is none. */
  const connected = (): Promise<pg.Client> => {
    if (client) return client
    const opened: Promise<pg.Client> = open(() => {
      if (client !== opened) return
      client = undefined
      if (heard && !ended.signal.aborted) reconnecting ??= reconnect()
    })
    client = opened
    return opened
  }

  async function open(onLost: () => void): Promise<pg.Client> {
    const fresh = new pg.Client({
      application_name: 'cellkeep bus',
      ...connection,
      pipeline: true,
      keepAlive: true,
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
      // A hint needs no disk: that it was sent is forgotten with the server anyway.
      options: '-c synchronous_commit=off -c idle_session_timeout=0',
    })
    fresh.on('error', onLost)
    fresh.on('end', onLost)
    fresh.on('notification', ({ payload }) => payload && decode(payload))
    try {
      await fresh.connect()
      if (heard) await fresh.query(`listen ${channel}`)
      return fresh
    } catch (error) {
      onLost()
      void fresh.end().catch(() => {})
      throw error
    }
  }

  async function reconnect(): Promise<void> {
    log.warn(
      'the connection for signals between nodes is lost; live connections are checked every 30 s meanwhile',
    )
    for (let wait = retryMs.first; !ended.signal.aborted; wait = Math.min(2 * wait, retryMs.most)) {
      await delay(wait * (0.5 + Math.random()), undefined, { signal: ended.signal }).catch(() => {})
      if (ended.signal.aborted) break
      const isBack = await connected().then(
        () => true,
        () => false,
      )
      if (!isBack) continue
      log.info('the connection for signals between nodes is back')
      heard?.gap()
      break
    }
    reconnecting = undefined
  }

  function start(): void {
    sending ??= flush().finally(() => {
      sending = undefined
      // It may have come between the last look and now.
      if (waiting && !ended.signal.aborted) start()
    })
  }

  /** Until nothing waits. A batch that fails is lost: nobody knows whether it arrived, and none may come twice. */
  async function flush(): Promise<void> {
    while (waiting) {
      const ready = await connected().catch(() => undefined)
      if (!ready) {
        if (!heard) return drop('the database cannot be reached')
        reconnecting ??= reconnect()
        await reconnecting
        if (ended.signal.aborted) return drop('the database was away when the process ended')
        continue
      }
      const payloads = encodeSignal(node, waiting)
      waiting = undefined
      try {
        await ready.query({ name: 'signal', text: sendText, values: [payloads] })
      } catch (error) {
        log.warn({ err: error }, 'a signal to other nodes is lost; they find out within 30 s')
      }
      await rest()
    }
  }

  /** Short where something urgent waits or comes, long otherwise; none when it closes. */
  async function rest(): Promise<void> {
    const pause = (ms: number) => delay(ms, undefined, { signal: leaving.signal }).catch(() => {})
    await pause(restMs.short)
    if (waiting && isUrgent(waiting)) return
    const urged = new Promise<void>((resolve) => {
      hurry = resolve
    })
    await Promise.race([pause(restMs.long - restMs.short), urged])
  }

  function drop(why: string): void {
    waiting = undefined
    log.warn(`a signal to other nodes is lost, as ${why}; they find out within 30 s`)
  }

  function check(): void {
    void client
      ?.then(async (asked) => {
        await asked.query('select 1').catch(() => asked.end())
      })
      .catch(() => {})
  }

  return {
    send: (signal) => {
      if (ended.signal.aborted || isEmpty(signal)) return
      waiting = merged(waiting, signal)
      if (isUrgent(signal)) hurry?.()
      start()
    },
    listen: async (by) => {
      heard = by
      ping = setInterval(check, pingMs).unref()
      // A connection that only sent so far does not listen.
      const before = client
      client = undefined
      await before?.then((sender) => sender.end()).catch(() => {})
      await connected().catch(() => {
        reconnecting ??= reconnect()
      })
    },
    close: async () => {
      clearInterval(ping)
      leaving.abort()
      const limit = delay(farewellMs, undefined, { ref: false })
      await Promise.race([sending, limit])
      ended.abort()
      await Promise.race([Promise.all([sending, reconnecting]), limit])
      const last = client
      client = undefined
      await Promise.race([last?.then((one) => one.end()).catch(() => {}), limit])
    },
  }
}

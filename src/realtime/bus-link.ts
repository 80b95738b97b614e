import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { isUnreachable } from '../db/servers/failure.ts'
import type { Primary } from '../db/servers/primary.ts'
import type { Log } from '../log/log.ts'
import type { Observer } from '../observe/observer.ts'

const retryMs = { first: 100, max: 5_000 }
/** How often the connection is checked, and how often it must hear itself. */
const checkMs = 15_000
const pingMs = 60_000
const answerMs = 5_000

export type LinkOptions = {
  session: Primary['session']
  log: Log
  observer: Observer
  /** The warnings of readiness. */
  warnings: { add(one: 'bus_deaf'): unknown; delete(one: 'bus_deaf'): boolean; has(one: 'bus_deaf'): boolean }
  channel: string
  /** Aborted when reconnecting must stop. */
  ended: AbortSignal
  /** Called with every notification. */
  hear(payload: string): void
  /** Seconds until a connection hears its own signal; undefined: it does not hear it. */
  echo(client: pg.Client): Promise<number | undefined>
}

/** The single connection of a bus: opened on demand and, once it listens, reopened whenever it is lost. */
type Link = {
  connected(): Promise<pg.Client>
  /** Resolves when a lost connection is back, or when `ended` is aborted. */
  restored(): Promise<void>
  /** Listens from now on; `gap` is called after every reconnection. */
  listen(gap: () => void): Promise<void>
  readonly isListening: boolean
  readonly isUp: boolean
  /** The attempt to reconnect that is under way, if any. */
  readonly reconnecting: Promise<void> | undefined
  disconnect(): Promise<void>
}

export function createLink(options: LinkOptions): Link {
  const { session, channel, log, observer, warnings, ended, hear, echo } = options
  let onGap: (() => void) | undefined
  let client: Promise<pg.Client> | undefined
  let reconnecting: Promise<void> | undefined
  let isOpen = false
  let timers: NodeJS.Timeout[] = []

  const connected = (): Promise<pg.Client> => {
    if (client) return client
    const opened: Promise<pg.Client> = open(() => {
      if (client !== opened) return
      client = undefined
      isOpen = false
      if (onGap && !ended.aborted) void restored()
    })
    client = opened
    void opened.then(
      () => {
        isOpen = client === opened
      },
      () => {},
    )
    return opened
  }

  async function open(onLost: () => void): Promise<pg.Client> {
    let fresh: pg.Client | undefined
    try {
      fresh = await session({
        application_name: 'cellkeep bus',
        // Signals need not be durable: they do not survive a server crash anyway.
        options: '-c synchronous_commit=off -c idle_session_timeout=0',
        pipeline: true,
        query_timeout: answerMs,
      })
      fresh.on('error', onLost)
      fresh.on('end', onLost)
      fresh.on('notification', ({ payload }) => payload && hear(payload))
      if (onGap) await fresh.query(`listen ${channel}`)
      return fresh
    } catch (error) {
      onLost()
      void fresh?.end().catch(() => {})
      throw error
    }
  }

  const restored = (): Promise<void> => {
    reconnecting ??= reconnect()
    return reconnecting
  }

  async function reconnect(): Promise<void> {
    log.warn(
      { event: 'signals_lost' },
      'the connection for signals between nodes is lost; until it is back, live connections are checked every 25 s',
    )
    for (let wait = retryMs.first; !ended.aborted; wait = Math.min(2 * wait, retryMs.max)) {
      await delay(wait * (0.5 + Math.random()), undefined, { signal: ended }).catch(() => {})
      if (ended.aborted) break
      await connected().catch(() => {})
      // The connection may already be lost again.
      if (!isOpen) continue
      log.info('the connection for signals between nodes is back')
      onGap?.()
      void ping(false)
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

  /** Replaces a connection that does not hear itself: at once the first time, later only when a ping is due. */
  async function ping(isDue: boolean): Promise<void> {
    const asked = client
    const one = await asked?.catch(() => undefined)
    // A database whose queue of signals is full refuses them, and keeps the connection.
    const lag = one && (await echo(one).catch((error) => (isUnreachable(error) ? null : undefined)))
    // Lost or replaced meanwhile.
    if (!one || lag === null || client !== asked || ended.aborted) return
    if (lag !== undefined) {
      observer.observe('bus_lag_seconds', lag)
      if (warnings.delete('bus_deaf')) log.info('signals between nodes arrive again')
      return
    }
    if (warnings.has('bus_deaf') && !isDue) return
    warnings.add('bus_deaf')
    log.warn(
      { event: 'bus_deaf' },
      'the connection for signals between nodes receives nothing; until it does, live connections are checked every 25 s',
    )
    await one.end().catch(() => {})
  }

  return {
    connected,
    restored,
    listen: async (gap) => {
      onGap = gap
      timers = [setInterval(check, checkMs), setInterval(ping, pingMs, true)]
      for (const timer of timers) timer.unref()
      // A connection opened for sending does not listen.
      const before = client
      client = undefined
      await before?.then((sender) => sender.end()).catch(() => {})
      await connected().then(
        () => void ping(false),
        () => void restored(),
      )
    },
    get isListening() {
      return onGap !== undefined
    },
    get isUp() {
      return isOpen && onGap !== undefined && !warnings.has('bus_deaf')
    },
    get reconnecting() {
      return reconnecting
    },
    disconnect: async () => {
      timers.forEach(clearInterval)
      const last = client
      client = undefined
      await last?.then((one) => one.end()).catch(() => {})
    },
  }
}

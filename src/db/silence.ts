import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { cut, streamOf } from './servers/dial.ts'
import type { Primary } from './servers/primary.ts'

/** How long a connection with unanswered statements may be silent before the server is asked about it. */
const silenceMs = 1_000
const askMs = 2_000
/** Time for an answer that is on its way. */
const settleMs = 250

/** Where the server waits for the client, neither will ever hear of the other. */
const waitingOnes = `select pid from pg_stat_activity where pid = any($1::int[]) and wait_event_type = 'Client'`

/** Statements whose answers are awaited. */
export type Silence = {
  asked(client: pg.Client): void
  answered(client: pg.Client): void
  end(): void
}

/**
 * Cuts connections that were lost without a sign, as when a firewall forgets one of them. Each statement on it would wait
 * for the time limit, and so would all that share its batches, while other connections work.
 */
export function watchSilence(
  server: Pick<Primary, 'session' | 'isAway' | 'isSilent'>,
  { isPooled }: { isPooled: boolean },
): Silence {
  const pending = new Map<pg.Client, number>()
  /** The bytes that had arrived on each when it was looked at last. */
  let seen = new Map<pg.Client, number | undefined>()
  let isAsking = false

  const pidOf = (client: pg.Client): number => (client as pg.Client & { processID: number }).processID
  const bytesOf = (client: pg.Client): number | undefined => streamOf(client)?.bytesRead
  const look = async (): Promise<void> => {
    // If the whole server is silent, others find out. A pooler tells ids of sessions that are not ours.
    if (isPooled || isAsking || server.isAway || server.isSilent) return
    const before = seen
    seen = new Map([...pending.keys()].map((client) => [client, bytesOf(client)]))
    // A large result may be left unread on purpose.
    const silent = [...seen].filter(
      ([client, bytes]) => before.get(client) === bytes && !streamOf(client)?.isPaused(),
    )
    if (silent.length === 0) return
    isAsking = true
    await ask(silent).catch(() => {})
    isAsking = false
  }
  const ask = async (silent: (readonly [pg.Client, number | undefined])[]): Promise<void> => {
    const session = await server.session({ application_name: 'cellkeep', query_timeout: askMs })
    try {
      const { rows } = await session.query<{ pid: number }>(waitingOnes, [
        silent.map(([client]) => pidOf(client)),
      ])
      if (rows.length === 0) return
      await delay(settleMs)
      const waiting = new Set(rows.map(({ pid }) => pid))
      for (const [client, bytes] of silent)
        if (waiting.has(pidOf(client)) && pending.has(client) && bytesOf(client) === bytes)
          cut(client, new Error('Connection terminated: the server hears nothing on it'))
    } finally {
      void session.end().catch(() => {})
    }
  }
  const timer = setInterval(look, silenceMs).unref()

  return {
    asked: (client) => void pending.set(client, (pending.get(client) ?? 0) + 1),
    answered: (client) => {
      const left = (pending.get(client) ?? 1) - 1
      if (left === 0) pending.delete(client)
      else pending.set(client, left)
    },
    end: () => clearInterval(timer),
  }
}

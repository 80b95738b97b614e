import type pg from 'pg'
import { cut, streamOf } from './servers/dial.ts'
import type { Primary } from './servers/primary.ts'

/** How long a connection with unanswered statements may be silent before the server is asked about it. */
const silenceMs = 1_000
const askMs = 2_000

/** Whether the server waits for the client, so that neither will ever hear of the other. */
const isWaiting = `select from pg_stat_activity where pid = $1 and wait_event_type = 'Client'`

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
export function watchSilence(primary: Pick<Primary, 'session' | 'isAway' | 'isSilent'>): Silence {
  const pending = new Map<pg.Client, number>()
  /** The bytes that had arrived on each when it was looked at last. */
  let seen = new Map<pg.Client, number | undefined>()
  let isAsking = false

  const bytesOf = (client: pg.Client): number | undefined => streamOf(client)?.bytesRead
  const look = async (): Promise<void> => {
    // If the whole server is silent, the primary finds out.
    if (isAsking || primary.isAway || primary.isSilent) return
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
    const session = await primary.session({ application_name: 'cellkeep', query_timeout: askMs })
    try {
      for (const [client, bytes] of silent) {
        const { processID } = client as pg.Client & { processID: number }
        const { rowCount } = await session.query(isWaiting, [processID])
        // An answer may have come meanwhile, above all if this process stood still.
        if (rowCount === 1 && pending.has(client) && bytesOf(client) === bytes)
          cut(client, new Error('Connection terminated: the server hears nothing on it'))
      }
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

import type pg from 'pg'
import { cut } from './servers/dial.ts'
import type { Primary } from './servers/primary.ts'

/** How long a connection with unanswered reads may be silent before the server is asked about it. */
const silenceMs = 1_000
const askMs = 2_000

/** Whether the server waits for the client, so that neither will ever hear of the other. */
const isWaiting = `select from pg_stat_activity where pid = $1 and wait_event_type = 'Client'`

/**
 * Cuts connections that were lost without a sign, as when a firewall forgets one of them. Each read on it would wait for
 * the time limit, and so would all that share its batches, while the other connections work.
 */
export function watchSilence(primary: Pick<Primary, 'session' | 'isAway'>) {
  /** Connections with unanswered reads: how many, and since when none was answered. */
  const waiting = new Map<pg.Client, { reads: number; since: number }>()
  let isAsking = false

  const look = async (): Promise<void> => {
    const now = performance.now()
    const silent = [...waiting].filter(([, { since }]) => now - since >= silenceMs)
    if (silent.length === 0 || isAsking || primary.isAway) return
    isAsking = true
    await ask(silent).catch(() => {})
    isAsking = false
  }
  /** Rejects if the whole server is silent, which the primary finds out. */
  const ask = async (silent: [pg.Client, { since: number }][]): Promise<void> => {
    const asked = await primary.session({ application_name: 'cellkeep', query_timeout: askMs })
    try {
      for (const [client, { since }] of silent) {
        const { processID } = client as pg.Client & { processID: number }
        const { rowCount } = await asked.query(isWaiting, [processID])
        // An answer may have come meanwhile, above all if this process stood still.
        if (rowCount === 1 && waiting.get(client)?.since === since)
          cut(client, new Error('Connection terminated: the server hears nothing on it'))
      }
    } finally {
      void asked.end().catch(() => {})
    }
  }
  const timer = setInterval(look, silenceMs).unref()

  return {
    sent: (client: pg.Client): void => {
      const { reads, since } = waiting.get(client) ?? { reads: 0, since: performance.now() }
      waiting.set(client, { reads: reads + 1, since })
    },
    answered: (client: pg.Client): void => {
      const reads = (waiting.get(client)?.reads ?? 1) - 1
      if (reads === 0) waiting.delete(client)
      else waiting.set(client, { reads, since: performance.now() })
    },
    end: (): void => clearInterval(timer),
  }
}

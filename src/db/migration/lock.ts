import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'

/** Held briefly by the process that changes the schema. */
export const runnerLock = 'cellkeep migrate'
/** Held by the process that builds indexes or fills columns; a starting node does not wait for it. */
export const longLock = 'cellkeep migrate background'

const askEveryMs = 200

type Waiting = {
  /** Called once if another process holds the lock; without `onWait` the result is then false. */
  onWait?: (() => void) | undefined
  signal?: AbortSignal | undefined
}

/**
 * Runs `work` under a lock of the session. It polls for the lock, because a statement that waits in the database would
 * block a concurrent index build.
 */
export async function underLock(
  client: pg.Client,
  name: string,
  work: () => Promise<void>,
  { onWait, signal }: Waiting,
): Promise<boolean> {
  const ask = async (what: string): Promise<boolean> => {
    const { rows } = await client.query(`select ${what}(hashtextextended($1, 0)) as done`, [name])
    return rows[0].done
  }
  for (let tries = 0; !(await ask('pg_try_advisory_lock')); tries++) {
    if (!onWait) return false
    if (tries === 0) onWait()
    await delay(askEveryMs, undefined, { signal })
  }
  try {
    await work()
    return true
  } finally {
    await ask('pg_advisory_unlock').catch(() => undefined)
  }
}

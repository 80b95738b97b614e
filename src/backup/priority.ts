import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'

/**
 * A tenth of the usual share: the lowest priority would all but stop the backup on a busy machine, and a backup holds
 * up vacuum.
 */
const low = constants.priority.PRIORITY_BELOW_NORMAL

/** Gives this process a lower priority than all else on this machine, as far as the system allows it. */
export async function yieldToOthers(): Promise<void> {
  // Linux has a priority for each thread, and some threads have already started.
  const threads = process.platform === 'linux' ? readdirSync('/proc/self/task').map(Number) : [0]
  for (const thread of threads) lower(thread)
  await lowerSession(process.pid)
}

/** The same for the process that serves this connection, which runs on this machine as this user. */
export async function yieldBehind(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const pid = rows[0]?.pid as number
  lower(pid)
  await lowerSession(pid)
}

function lower(id: number): void {
  try {
    setPriority(id, low)
  } catch {
    // The process has ended, or the system does not allow it.
  }
}

/** Linux takes one change of a session in 100 ms from all ordinary users together. */
const [tries, pauseMs] = [10, 110]

/**
 * Linux may first divide the processors among sessions (autogroups, sched(7)), and a priority counts only within one. A
 * session that another process began, such as a shell, is left alone.
 */
async function lowerSession(pid: number): Promise<void> {
  for (let tried = 1; tried <= tries; tried++)
    try {
      const [, , , session] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
      if (session === String(pid)) writeFileSync(`/proc/${pid}/autogroup`, String(low))
      return
    } catch (error) {
      // Another system, or a Linux without autogroups.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      await delay(pauseMs)
    }
}

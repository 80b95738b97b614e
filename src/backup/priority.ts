import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import type pg from 'pg'

/** A tenth of the usual share: the lowest of all would all but stop it on a busy machine, and it holds up vacuum. */
const low = constants.priority.PRIORITY_BELOW_NORMAL

/** Lets all else on this machine go before this process, as far as the system allows it. */
export function yieldToOthers(): void {
  // Linux has a priority for each thread, and some have begun by now.
  const threads = process.platform === 'linux' ? readdirSync('/proc/self/task').map(Number) : [0]
  for (const thread of threads) lower(thread)
  lowerSession(process.pid)
}

/** The same for the process that serves this connection, which is one of this machine and user. */
export async function yieldBehind(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const pid = rows[0]?.pid as number
  lower(pid)
  lowerSession(pid)
}

function lower(id: number): void {
  try {
    setPriority(id, low)
  } catch {
    // It has ended, or the system does not allow it.
  }
}

/**
 * Linux may share the processors out among sessions first (autogroups, sched(7)), and a priority counts only within
 * one. A session that somebody else began, as a shell does, is left alone.
 */
function lowerSession(pid: number): void {
  try {
    const [, , , session] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    if (session === String(pid)) writeFileSync(`/proc/${pid}/autogroup`, String(low))
  } catch {
    // Another system, or one without them.
  }
}

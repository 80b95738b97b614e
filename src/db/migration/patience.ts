import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Patience, Runner } from './runner.ts'
import { refuse } from './steps.ts'

export const defaultPatience: Patience = {
  lockMs: 2_000,
  tries: 20,
  pauseMs: [500, 5_000],
  standstillMs: 30_000,
  lagS: 5,
}

/**
 * Runs `work` in one transaction that waits only briefly for locks, because other statements on the same table queue
 * behind it. After a timeout it is rolled back and tried again. Rejects with `migration_lock_timeout`, which names the
 * last blocker seen.
 */
export async function patiently<T>(runner: Runner, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const { client } = runner
  const { lockMs, tries, pauseMs, standstillMs } = runner.patience
  let watch: Watch | undefined
  try {
    for (let tried = 1; ; tried++) {
      try {
        await client.query(
          `begin isolation level read committed; set local lock_timeout = ${lockMs};
           set local idle_in_transaction_session_timeout = ${standstillMs}`,
        )
        const result = await work(client)
        await client.query('commit')
        return result
      } catch (error) {
        await client.query('rollback').catch(() => undefined)
        if (!isBlocked(error)) throw error
        if (tried >= tries) throw refuse('migration_lock_timeout', lockText(runner, watch?.seen()), error)
        watch ??= await watchBlockers(runner, lockMs / 8)
        const [min, max] = pauseMs
        const wait = min + Math.random() * Math.min(max - min, min * 2 ** tried)
        await delay(wait, undefined, { signal: runner.signal })
      }
    }
  } finally {
    await watch?.end()
  }
}

/** Waited too long for a lock, or was chosen to end a deadlock. */
const isBlocked = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && ['55P03', '40P01'].includes(error.code ?? '')

/** A transaction in the way of others. It is of a server process or, if it has a `gid`, prepared and of no process. */
export type Blocker = { pid: number | null; gid: string | null; application: string; seconds: number | null }
type Watch = { seen(): Blocker | undefined; end(): Promise<void> }

/** Polls for what blocks the runner's client, because it can no longer be found after a timeout. */
export async function watchBlockers(
  { client, connect }: Pick<Runner, 'client' | 'connect'>,
  everyMs: number,
  onSeen?: (blocker: Blocker) => void,
): Promise<Watch> {
  const watcher = await connect()
  const ending = new AbortController()
  let last: Blocker | undefined
  const { rows: own } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const watching = (async () => {
    while (!ending.signal.aborted) {
      const { rows } = await watcher.query<Blocker>(blockersOf, [own[0]?.pid])
      last = rows[0] ?? last
      if (rows[0]) onSeen?.(rows[0])
      await delay(everyMs, undefined, { signal: ending.signal })
    }
  })().catch(() => undefined)
  return {
    seen: () => last,
    end: async () => {
      ending.abort()
      await watching
      await watcher.end().catch(() => undefined)
    },
  }
}

/** Names a session of `pg_stat_activity`, which hides most about the sessions of others from an ordinary user. */
export const whoOf = `coalesce(nullif(application_name, ''), backend_type, 'user ' || usename)`

/** Joins a row `l` of `pg_locks` with the prepared transaction that holds the lock; it also holds one on its own id. */
export const preparedOf: string = `(pg_locks own join pg_prepared_xacts p on p.transaction = own.transactionid)
  on l.pid is null and own.pid is null and own.virtualtransaction = l.virtualtransaction`

/** What blocks a server process, oldest transaction first. */
export const blockersOf: string = `
  select pid, null as gid, ${whoOf} as application,
         extract(epoch from clock_timestamp() - coalesce(xact_start, backend_start))::float8 as seconds
    from pg_stat_activity where pid = any(pg_blocking_pids($1))
  union
  select null, p.gid, 'user ' || p.owner, extract(epoch from clock_timestamp() - p.prepared)::float8
    from pg_locks w join pg_locks l on l.granted and (l.locktype, l.database, l.relation, l.transactionid)
           is not distinct from (w.locktype, w.database, w.relation, w.transactionid)
    join ${preparedOf}
   where w.pid = $1 and not w.granted and 0 = any(pg_blocking_pids($1))
  order by seconds desc nulls last`

export function blockerText({ pid, gid, application, seconds }: Blocker): string {
  const who =
    gid === null
      ? `the server process ${pid} (${application})`
      : `the prepared transaction ${pg.escapeLiteral(gid)} (${application})`
  if (seconds === null) return who
  return `${who}, ${gid === null ? 'whose transaction began' : 'prepared'} ${Math.round(seconds)} s ago`
}

/** Who it is, and how to go on. */
export const remedyText = (blocker: Blocker): string =>
  `${blockerText(blocker)}: let that end, or run \`${endingOf(blocker)}\``

/** The statement that ends it. */
export const endingOf = ({ pid, gid }: Blocker): string =>
  gid === null ? `select pg_terminate_backend(${pid})` : `rollback prepared ${pg.escapeLiteral(gid)}`

function lockText({ at, patience: { tries } }: Runner, blocker: Blocker | undefined): string {
  const who = blocker ? `it was held by ${remedyText(blocker)}` : 'another session held it'
  return `${at} did not get its lock in ${tries} tries; ${who}. Then run \`cellkeep migrate\` again: the steps before it are done.`
}

import { refusal } from '../errors.ts'
import { farewell } from './servers/dial.ts'
import { databaseRefusal, unavailable, withCause } from './servers/failure.ts'
import type { Primary } from './servers/primary.ts'

/** How often the connection that holds the lock is checked. */
const askMs = 5_000
const answerMs = 5_000
/**
 * After this long without a check the server closes the connection, because a process or machine that stands still
 * cannot.
 */
const standstillMs = 15_000

/**
 * Runs `work` under an advisory lock on `name`; resolves to undefined without running it if another process holds the
 * lock. A separate connection, named in `pg_stat_activity`, holds the lock. When that connection ends, another process
 * may take the lock, so `lost` is aborted and the call rejects with `service_unavailable`.
 */
export async function exclusively<T>(
  session: Primary['session'],
  name: string,
  lockName: string,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const lost = new AbortController()
  const options = `-c idle_session_timeout=${standstillMs}`
  const settings = { application_name: name, query_timeout: answerMs, options }
  const client = await session(settings).catch((error) => {
    throw unavailable(error)
  })
  for (const sign of ['error', 'end'] as const) client.on(sign, () => lost.abort())
  const call = async (what: 'pg_try_advisory_lock' | 'pg_advisory_unlock'): Promise<boolean> =>
    (await client.query(`select ${what}(hashtextextended($1, 0)) as done`, [lockName])).rows[0].done
  let asking: NodeJS.Timeout | undefined
  try {
    if (!(await call('pg_try_advisory_lock'))) return undefined
    asking = setInterval(() => void client.query('select').catch(() => lost.abort()), askMs).unref()
    const result = await work(lost.signal)
    if (lost.signal.aborted) throw new Error(`The connection that held the lock of ${name} ended.`)
    // Unlocks explicitly: until the server has noticed that the connection is closed, the next run would be refused.
    await call('pg_advisory_unlock')
    return result
  } catch (error) {
    throw lost.signal.aborted
      ? withCause(refusal('service_unavailable'), error)
      : (databaseRefusal(error) ?? error)
  } finally {
    clearInterval(asking)
    await farewell(client)
  }
}

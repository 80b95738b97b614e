import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { createClock } from '../db/clock.ts'
import { withoutLimits } from '../db/migration/migrate.ts'
import { createAdmission } from '../db/servers/admission.ts'
import { type Connection, clientConfig } from '../db/servers/connection.ts'
import { dial } from '../db/servers/dial.ts'
import { place } from '../db/servers/fence.ts'
import { judgeStandby } from '../db/servers/replica-admission.ts'
import { compile, sql } from '../db/sql.ts'
import { StartError } from '../errors.ts'

const askMs = 200
const patienceMs = 600_000

/**
 * A session of the first of these servers that is a standby of the primary, after it has replayed everything that was
 * acknowledged before the call. Rejects with StartError.
 */
export async function onStandby(
  primary: pg.Client,
  standbys: readonly Connection[],
  application_name: string,
  interrupt?: AbortSignal,
): Promise<pg.Client> {
  const admission = createAdmission({ statementMs: 0, idleMs: 0, schema: undefined }, createClock(), () => {})
  await admission.judgeServer(primary)
  const { text } = compile(sql`select ${place}::float8 as fence`)
  const { fence } = (await primary.query<{ fence: number }>(text)).rows[0] as { fence: number }
  const failures: string[] = []
  for (const connection of standbys)
    try {
      const client = await dial({
        connection,
        config: (one) => ({ application_name, ...clientConfig(one) }),
        judge: async (client) => void (await judgeStandby(client, admission)),
      })
      try {
        await withoutLimits(client, connection.schema)
        await caughtUp(client, fence, interrupt)
      } catch (error) {
        await client.end().catch(() => undefined)
        throw error
      }
      return client
    } catch (error) {
      if (error instanceof StartError || interrupt?.aborted) throw error
      failures.push((error as Error).message)
    }
  const why = failures.join('; ')
  throw new StartError(
    'replica_down',
    `No replica can be used: ${why}. Repair one of them, or leave out --from-replica.`,
    1,
  )
}

async function caughtUp(client: pg.Client, fence: number, interrupt?: AbortSignal): Promise<void> {
  const until = performance.now() + patienceMs
  for (;;) {
    const { rows } = await client.query(
      `select pg_last_wal_replay_lsn() - '0/0' >= $1::float8::bigint as is_there`,
      [fence],
    )
    if (rows[0].is_there) return
    if (performance.now() > until) break
    await delay(askMs, undefined, interrupt && { signal: interrupt })
  }
  throw new StartError(
    'replica_behind',
    'The replica has not caught up with the primary within ten minutes. Check whether its replay is paused, or held up by long reads.',
    1,
  )
}

import pg from 'pg'
import { patiently } from './patience.ts'
import { recordBegun, recordDone } from './records.ts'
import type { OnProgress, Runner } from './runner.ts'
import { type Step, statementsOf } from './steps.ts'

const lookEveryMs = 1000

/**
 * Builds indexes while others write. Each other statement is its own transaction. An interrupted build leaves an
 * invalid index behind.
 */
export async function runIndex(runner: Runner, step: Step, onProgress?: OnProgress): Promise<void> {
  const { client } = runner
  await recordBegun(client, step)
  for (const statement of statementsOf(step.text)) {
    const [, index] = /^create (?:unique )?index concurrently (?:if not exists )?(\w+)/i.exec(statement) ?? []
    if (index !== undefined) await dropInvalid(client, index)
    const run = (): Promise<unknown> => client.query(statement)
    if (/\bconcurrently\b/i.test(statement)) await whileBuilding(runner, onProgress, run)
    else await patiently(runner, run)
  }
  await recordDone(client, step)
}

async function dropInvalid(client: pg.Client, index: string): Promise<void> {
  const { rows } = await client.query(
    'select from pg_index where indexrelid = to_regclass($1) and not indisvalid',
    [index],
  )
  if (rows.length > 0) await client.query(`drop index concurrently ${pg.escapeIdentifier(index)}`)
}

/** Reports the progress of the index that the runner's client builds. */
export async function whileBuilding<T>(
  { client, connect }: Pick<Runner, 'client' | 'connect'>,
  onProgress: OnProgress | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!onProgress) return await work()
  const watcher = await connect()
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const look = async (): Promise<void> => {
    const seen = await watcher.query<{ done: number; of: number }>(
      `select blocks_done::float8 as done, blocks_total::float8 as of from pg_stat_progress_create_index
       where pid = $1 and blocks_total > 0`,
      [rows[0]?.pid],
    )
    const [row] = seen.rows
    if (row) onProgress(row.done, row.of)
  }
  const timer = setInterval(() => void look().catch(() => undefined), lookEveryMs)
  try {
    return await work()
  } finally {
    clearInterval(timer)
    await watcher.end().catch(() => undefined)
  }
}

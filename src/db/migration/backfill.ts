import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { effectsOf } from './effects.ts'
import { patiently } from './patience.ts'
import { recordBegun } from './records.ts'
import type { OnProgress, Runner } from './runner.ts'
import type { Step } from './steps.ts'

const firstRows = 500
export const rowsMax = 5000
/** Smaller batches are hardly shorter, and pay the fixed cost of a batch more often. */
const rowsMin = 100
/** How long a batch should take, and so hold the locks of its rows. */
const batchMs = 200

/**
 * Repeats the statement of the step. It gets the cursor of the batch before (null at first) and how many rows to take,
 * and returns one row: `cursor`, null when nothing is left, and `rows`. A batch commits with its cursor, so that the
 * next run continues after it.
 */
export async function runBackfill(runner: Runner, step: Step, onProgress?: OnProgress): Promise<void> {
  const { client } = runner
  await recordBegun(client, step)
  await estimate(client, step)
  for (let limit = firstRows; ; ) {
    const begun = performance.now()
    const { isOver, done, total, lag } = await patiently(runner, () => runBatch(client, step, limit))
    onProgress?.(done, total)
    if (isOver) return
    const ms = performance.now() - begun
    limit = Math.max(rowsMin, Math.min(rowsMax, limit * 2, Math.floor((limit * batchMs) / ms)))
    for (let s = lag; s > runner.patience.lagS; s = await replicaLag(client))
      await delay(1000, undefined, { signal: runner.signal })
  }
}

type Batch = { isOver: boolean; done: number; total: number; lag: number }

/** Under the lock of its record, so that a second runner finds the cursor that the first one left. */
export async function runBatch(client: pg.Client, { name, text }: Step, limit: number): Promise<Batch> {
  const { rows: records } = await client.query<{ cursor: unknown }>(
    `select cursor from schema_migration where name = $1 and state = 'running' for update`,
    [name],
  )
  const [record] = records
  if (!record) return { isOver: true, done: 0, total: 0, lag: 0 }
  const { rows } = await client.query<{ cursor: unknown; rows: number }>(text, [json(record.cursor), limit])
  const { cursor = null, rows: count = 0 } = rows[0] ?? {}
  const { rows: kept } = await client.query<Batch>(
    `update schema_migration
        set cursor = $2, done_rows = coalesce(done_rows, 0) + $3,
            state = case when $2::jsonb is null then 'done' else state end,
            done_at = case when $2::jsonb is null then clock_timestamp() end
      where name = $1
      returning state = 'done' as "isOver", done_rows::float8 as done, total_rows::float8 as total,
                (${lagNow}) as lag`,
    [name, json(cursor), count],
  )
  return kept[0] as Batch
}

const json = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

const lagNow = `select coalesce(max(extract(epoch from replay_lag)), 0)::float8 from pg_stat_replication`

async function replicaLag(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ lag: number }>(`select (${lagNow}) as lag`)
  return rows[0]?.lag ?? 0
}

/** An estimate from the statistics: counting would take as long as the work. */
async function estimate(client: pg.Client, step: Step): Promise<void> {
  await client.query(
    `update schema_migration
        set total_rows = (select greatest(reltuples, 0) from pg_class where oid = to_regclass($2))
      where name = $1 and total_rows is null`,
    [step.name, effectsOf(step)[0]?.table],
  )
}

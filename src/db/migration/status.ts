import type pg from 'pg'
import { longLock, runnerLock } from './lock.ts'
import { type Blocker, blockersOf } from './patience.ts'
import { hasTable } from './records.ts'
import type { Kind, Step } from './steps.ts'

export type StepStatus = {
  step: string
  kind: Kind
  /** `interrupted`: begun, but no process runs it; the next run continues it. */
  state: 'pending' | 'running' | 'interrupted' | 'done'
  started_at: string | null
  done_at: string | null
  done_rows: number | null
  total_rows: number | null
}

/** A process that runs steps, as PostgreSQL sees it. */
export type RunnerStatus = {
  pid: number
  address: string | null
  /** How long its present statement has run. */
  seconds: number
  waits_for: Blocker[]
  /** Of the index that it builds, in blocks. */
  index: { phase: string; done: number; of: number } | null
}

export type MigrationStatus = { steps: StepStatus[]; runners: RunnerStatus[] }

type Row = Omit<StepStatus, 'step' | 'state'> & { name: string; state: 'running' | 'done' }

/** The state of each step, and who runs one. `steps` are those of this version; the database may have more. */
export async function statusOf(client: pg.Client, steps: readonly Step[]): Promise<MigrationStatus> {
  const runners = await runnersOf(client)
  const { rows } = (await hasTable(client, 'schema_migration'))
    ? await client.query<Row>(
        `select name, coalesce(r.kind, 'expand') as kind, coalesce(r.state, 'done') as state, r.started_at,
                coalesce(r.done_at, case when coalesce(r.state, 'done') = 'done' then applied_at end) as done_at,
                r.done_rows::float8, r.total_rows::float8
           from schema_migration m, jsonb_to_record(to_jsonb(m)) as r (kind text, state text,
                started_at timestamptz, done_at timestamptz, done_rows bigint, total_rows bigint)
          order by name`,
      )
    : { rows: [] }
  const isRun = runners.some(({ lock }) => lock === longLock)
  const recorded = rows.map(({ name: step, state, ...row }): StepStatus => {
    const isLeft = state === 'running' && !isRun
    return { step, ...row, state: isLeft ? 'interrupted' : state }
  })
  const known = new Set(recorded.map(({ step }) => step))
  const none = { started_at: null, done_at: null, done_rows: null, total_rows: null }
  const pending = steps
    .filter(({ name }) => !known.has(name))
    .map(({ name: step, kind }): StepStatus => ({ step, kind, state: 'pending', ...none }))
  return {
    steps: [...recorded, ...pending].sort((a, b) => (a.step < b.step ? -1 : 1)),
    runners: runners.map(({ lock: _, ...runner }) => runner),
  }
}

async function runnersOf(client: pg.Client): Promise<(RunnerStatus & { lock: string })[]> {
  const { rows } = await client.query<RunnerStatus & { lock: string }>(
    `select a.pid, host(a.client_addr) as address, named.lock,
            extract(epoch from clock_timestamp() - a.query_start)::float8 as seconds,
            case when p.pid is not null then json_build_object('phase', p.phase,
              'done', p.blocks_done, 'of', p.blocks_total) end as index
       from unnest($1::text[]) as named (lock)
       join pg_locks l on l.locktype = 'advisory' and l.granted and l.objsubid = 1
        and l.database = (select oid from pg_database where datname = current_database())
        and (l.classid::bigint << 32) | l.objid::bigint = hashtextextended(named.lock, 0)
       join pg_stat_activity a using (pid)
       left join pg_stat_progress_create_index p on p.pid = a.pid
      order by a.pid`,
    [[runnerLock, longLock]],
  )
  const withBlockers = rows.map(async (row) => ({
    ...row,
    waits_for: (await client.query<Blocker>(blockersOf, [row.pid])).rows,
  }))
  return await Promise.all(withBlockers)
}

import type pg from 'pg'
import { type Cost, costliest, type Effect, effectsOf, type Lock, strongest } from './effects.ts'
import { nodesBelow, requireRoom } from './run.ts'
import type { Kind, Step } from './steps.ts'

export type PlannedStep = {
  step: string
  kind: Kind
  needs: string
  /** Existing tables only; `rows` by the statistics of PostgreSQL, null where there are none. */
  tables: (Effect & { rows: number | null })[]
  lock: Lock
  cost: Cost
  rows: number | null
  /** Whether the nodes that run now can answer while it runs and afterwards. */
  nodes_go_on: boolean
  /** The nodes that do not work on a database with this step. */
  nodes_below: string[]
}

/** Reading or rewriting this few rows takes no longer than a step may wait for its lock. */
const fewRows = 100_000

/**
 * What the pending steps will do; rejects with `foreign_tables` where they would be refused. Reads only the catalogs.
 */
export async function planned(client: pg.Client, pending: readonly Step[]): Promise<PlannedStep[]> {
  await requireRoom(client, pending)
  const plans: PlannedStep[] = []
  for (const step of pending) {
    const tables = await tablesOf(client, effectsOf(step))
    const lock = strongest(tables)
    const cost = costliest(tables)
    const counted = tables.flatMap(({ rows }) => rows ?? [])
    const rows = counted.length > 0 ? Math.max(...counted) : null
    const nodes_below = await nodesBelow(client, step.needs)
    const blocks = cost !== 'none' && (rows ?? 0) > fewRows && !goesBesideWrites(lock)
    plans.push({
      ...{ step: step.name, kind: step.kind, needs: step.needs, tables, lock, cost, rows },
      nodes_go_on: nodes_below.length === 0 && !blocks,
      nodes_below,
    })
  }
  return plans
}

const goesBesideWrites = (lock: Lock): boolean =>
  ['ACCESS SHARE', 'ROW EXCLUSIVE', 'SHARE UPDATE EXCLUSIVE'].includes(lock)

/** Resolves named indexes to their tables; leaves out tables that another pending step creates. */
async function tablesOf(client: pg.Client, effects: readonly Effect[]): Promise<PlannedStep['tables']> {
  const { rows: found } = await client.query<{ table: string; rows: number | null } | { table: null }>(
    `select c.relname::text as table, nullif(c.reltuples, -1)::float8 as rows
       from unnest($1::text[]) with ordinality as named (name, n)
       left join pg_index i on i.indexrelid = to_regclass(name)
       left join pg_class c on c.oid = coalesce(i.indrelid, to_regclass(name)) order by n`,
    [effects.map(({ table }) => table)],
  )
  return effects.flatMap((effect, index) => {
    const at = found[index]
    return at?.table ? [{ ...effect, ...at }] : []
  })
}

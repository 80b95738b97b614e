import type pg from 'pg'
import type { App } from '../core/app.ts'
import { type Database, type Sql, sql } from '../db/db.ts'

/** Empty partitions to have before their numbers are given. */
const ahead = 2

/** Makes the partitions of the audit log that the next numbers need, of `audit_partition_rows` each. */
export async function makePartitions({ db, config, log }: Pick<App, 'db' | 'config' | 'log'>): Promise<void> {
  let upper = sql`audit_partition(seq + 1, ${config.audit_partition_rows}::bigint)`
  for (let nth = 0; nth < ahead; nth++)
    upper = sql`audit_partition(${upper}, ${config.audit_partition_rows}::bigint)`
  try {
    // Earlier versions have one table, which a background step divides; until then there is nothing to do.
    await db.run(sql`
      select ${upper} from audit_position
      where exists (select from pg_partitioned_table where partrelid = 'audit_log'::regclass)`)
  } catch (error) {
    log.warn(
      { event: 'audit_partition', err: error },
      'no partition could be created for the next rows of the audit log; without one they wait and cannot be read',
    )
  }
}

/** Partitions to be dropped carry this comment, so that the next run continues an interrupted one. */
const mark = 'cellkeep: removed by audit_retention_days'

/** A partition that will be dropped within this time is left, so that its rows are not deleted one by one. */
const aging = sql`interval '1 day'`

/**
 * Drops the partitions whose rows are all older than `days`, and returns how many rows they had. Rows up to the number
 * `whole` need not be deleted one by one: their partitions are dropped within a day.
 */
export async function dropPartitions(
  db: Database,
  days: number,
  stop: AbortSignal,
): Promise<{ dropped: number; whole: number }> {
  const full = await db.rows<{ lower: number; upper: number }>(sql`
    select lower, upper from audit_partitions(), audit_position where upper <= seq + 1 order by lower`)
  const old: typeof full = []
  let whole = 0
  for (const [nth, partition] of full.entries()) {
    const { is_old, is_aging } = await db.one<{ is_old: boolean; is_aging: boolean }>(sql`
      select coalesce(newest <= bound, true) as is_old, coalesce(newest <= bound + ${aging}, true) as is_aging
      from (select max(created_at) as newest from ${nameOf('audit_log', partition.lower)}) found,
        (select now() - ${days}::int * interval '1 day' as bound) bound`)
    if (!is_aging) break
    whole = partition.upper - 1
    if (is_old && old.length === nth) old.push(partition)
  }
  await markRemoved(db, old)
  return { dropped: await dropMarked(db, stop), whole }
}

/** Committed before the rows are dropped, so that readers always report the gap. */
async function markRemoved(db: Database, old: readonly { lower: number; upper: number }[]): Promise<void> {
  const last = old.at(-1)
  if (!last) return
  await db.transaction(async (tx) => {
    await tx.run(sql`update audit_position set removed_seq = greatest(removed_seq, ${last.upper - 1})`)
    for (const { lower } of old)
      for (const table of ['audit_log', 'audit_cell'] as const)
        await tx.run(sql`comment on table ${nameOf(table, lower)} is ${sql.raw(`'${mark}'`)}`)
  })
}

const nameOf = (table: 'audit_log' | 'audit_cell', lower: number): Sql => sql.raw(`${table}_${lower}`)

type Marked = { name: string; parent: string | null; is_pending: boolean }

/** On a connection without time limits: a detachment waits for every transaction that has read the log. */
async function dropMarked(db: Database, stop: AbortSignal): Promise<number> {
  const marked = await db.rows<Marked>(sql`
    select c.relname as name, p.relname as parent, coalesce(inhdetachpending, false) as is_pending
    from pg_class c left join pg_inherits i on inhrelid = c.oid left join pg_class p on p.oid = inhparent
    where c.relnamespace = current_schema()::regnamespace and c.relname ~ '^audit_(log|cell)_[0-9]+$'
      and obj_description(c.oid, 'pg_class') = ${mark} order by c.oid`)
  if (marked.length === 0) return 0
  const client = await db.primary.session({
    application_name: 'cellkeep retention',
    options: '-c lock_timeout=30s',
  })
  client.on('error', () => {})
  try {
    let dropped = 0
    for (const table of marked) {
      if (stop.aborted) break
      dropped += await dropOne(client, table)
    }
    return dropped
  } finally {
    await client.end().catch(() => {})
  }
}

async function dropOne(client: pg.Client, { name, parent, is_pending }: Marked): Promise<number> {
  if (parent !== null)
    await client.query(
      `alter table ${parent} detach partition ${name} ${is_pending ? 'finalize' : 'concurrently'}`,
    )
  const { rows } = await client.query(`select count(*)::float8 as count from ${name}`)
  await client.query(`drop table ${name}`)
  return name.startsWith('audit_log') ? rows[0].count : 0
}

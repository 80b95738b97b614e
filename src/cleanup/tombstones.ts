import { addUp, ownShard } from '../cells/usage.ts'
import { type Queryable, sql } from '../db/db.ts'

/** Cells per transaction. Their edges, grants and timelines go too, so it deletes many more rows. */
export const tombstoneBatch = 500

/**
 * Removes a batch of cells that were deleted more than `days` ago, and returns how many. The audit log keeps its
 * rows. Cells that another transaction has locked are left to the next run.
 */
export async function removeTombstones(db: Queryable, days: number): Promise<number> {
  const { removed } = await db.one<{ removed: number }>(sql`
    with gone as (
      delete from cell where id = any(array(
        select id from cell where deleted_at <= now() - ${days}::int * interval '1 day'
        order by deleted_at limit ${sql.raw(tombstoneBatch)} for update skip locked
      )) returning id, created_by, data_bytes
    ), timelines as (
      delete from audit_cell where cell_id in (select id from gone)
    ), freed as (
      insert into cell_usage (account_id, shard, cells, bytes)
      select actor.account_id, ${ownShard}, -count(*), -sum(gone.data_bytes)
      from gone join actor on actor.id = gone.created_by group by actor.account_id
      ${addUp}
    )
    select count(*) as removed from gone`)
  return removed
}

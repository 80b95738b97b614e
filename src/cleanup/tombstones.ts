import { addUp, ownShard } from '../cells/usage.ts'
import { type Database, type Queryable, type Sql, sql } from '../db/db.ts'

const batchCells = 500
/** Max edges of each kind per statement: a cell may have millions, more than a statement can delete in time. */
const batchEdges = 5000

/**
 * Removes the cells that were deleted more than `days` ago, in batches that each commit, and returns how many. The audit
 * log keeps its rows. Cells that another transaction has locked are left to the next run.
 */
export async function removeTombstones(db: Database, days: number, stop: AbortSignal): Promise<number> {
  let removed = 0
  while (!stop.aborted) {
    const found = await db.rows<{ id: string }>(sql`
      select id from cell where deleted_at <= now() - ${days}::int * interval '1 day'
      order by deleted_at limit ${sql.raw(batchCells)} for update skip locked`)
    if (found.length === 0) break
    const ids = sql`${found.map(({ id }) => id)}::uuid[]`
    let isDetached = false
    while (!isDetached && !stop.aborted) isDetached = await detach(db, ids)
    if (isDetached) removed += await removeCells(db, ids)
  }
  return removed
}

/** Deletes some of what belongs to deleted cells, which nobody can reach; true if nothing is left. */
async function detach(db: Queryable, ids: Sql): Promise<boolean> {
  // An edge that meanwhile moved to another cell has another `ctid`, and stays.
  const some = (table: Sql, condition: Sql): Sql => sql`
    delete from ${table} where ctid = any(array(
      select ctid from ${table} where ${condition} limit ${sql.raw(batchEdges)}
    )) returning 1`
  const { most } = await db.one<{ most: number }>(sql`
    with fields as (${some(sql`cell_field`, sql`source_id = any(${ids}) or target_id = any(${ids})`)}),
      items as (${some(sql`cell_item`, sql`parent_id = any(${ids}) or child_id = any(${ids})`)}),
      grants as (${some(sql`cell_grant`, sql`cell_id = any(${ids})`)}),
      timelines as (
        delete from audit_cell where (cell_id, seq) in (
          select cell_id, seq from audit_cell where cell_id = any(${ids}) limit ${sql.raw(batchEdges)}
        ) returning 1
      )
    select greatest((select count(*) from fields), (select count(*) from items),
      (select count(*) from grants), (select count(*) from timelines)) as most`)
  return most < batchEdges
}

/** Deletes the cells, with what was added to them since `detach`. */
async function removeCells(db: Queryable, ids: Sql): Promise<number> {
  const { removed } = await db.one<{ removed: number }>(sql`
    with gone as (
      delete from cell where id = any(array(
        select id from cell where id = any(${ids}) and deleted_at is not null for update skip locked
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

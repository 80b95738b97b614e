import { type Queryable, sql } from '../db/db.ts'

/**
 * Deletes at most `max` numbered audit rows older than `days`, with their places in timelines, and returns how
 * many. Stores the highest number deleted: by it, streams and replay tell a gap from numbers never used.
 */
export async function removeAuditRows(db: Queryable, days: number, max: number): Promise<number> {
  const { removed } = await db.one<{ removed: number }>(sql`
    with old as (
      select id, seq, cell_ids from audit_log
      where seq is not null and created_at <= now() - ${days}::int * interval '1 day'
      order by created_at limit ${sql.raw(max)}
    ), gone as (
      delete from audit_log l using old where l.id = old.id returning l.seq
    ), timelines as (
      delete from audit_cell m using (select seq, unnest(cell_ids) as cell_id from old) place
      where m.cell_id = place.cell_id and m.seq = place.seq
    ), kept as (
      update audit_position set removed_seq = greatest(removed_seq, (select max(seq) from gone))
      where exists (select from gone)
    )
    select count(*) as removed from gone`)
  return removed
}

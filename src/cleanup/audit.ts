import { type Queryable, sql } from '../db/db.ts'

/**
 * Removes settled audit rows that are so many days old, with their places in timelines, at most `most`; how
 * many (contract 3, section 8.9). The highest number removed is kept, by which streams and replay tell a gap
 * from numbers that were never used.
 */
export async function removeAuditRows(db: Queryable, days: number, most: number): Promise<number> {
  const { removed } = await db.one<{ removed: number }>(sql`
    with old as (
      select id, seq, cell_ids from audit_log
      where seq is not null and created_at <= now() - ${days}::int * interval '1 day'
      order by created_at limit ${sql.raw(most)}
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

import { type Database, type Sql, sql } from '../db/db.ts'

/** How far the log is. */
export type Position = {
  /** The highest number given, as of a moment ago. */
  seq: number
  /** Numbers per partition, about. */
  partition_rows: number
}

const numberedMax = 10_000

/**
 * Moves committed rows into the log, numbered in the order in which they became visible.
 * Readers of the log call this first so that callers see their own writes.
 */
export async function numberRows(db: Pick<Database, 'one' | 'readOnly' | 'replicas'>): Promise<Position> {
  for (;;) {
    const { is_waiting, ...position } = await db.readOnly.one<Position & { is_waiting: boolean }>(
      sql`select seq, partition_rows, audit_waiting() as is_waiting from audit_position`,
    )
    const { numbered } = is_waiting
      ? await db.one<{ numbered: number }>(sql`select audit_number(${sql.raw(numberedMax)}) as numbered`)
      : { numbered: 0 }
    // Fewer: all that had been committed are numbered, or no partition can be made for them.
    if (numbered === numberedMax) continue
    // So that replicas show the numbers too.
    await db.replicas?.fence.take()
    return position
  }
}

/** The rows between two numbers, both exclusive. */
export type Stretch<N = number> = {
  direction: 'asc' | 'desc'
  from: N
  to: N
  /** It lies within few of many partitions. */
  isNarrow?: boolean
}

/** Above every number that a row can have. */
export const seqEnd = 2 ** 53

/** Whether a number is in a stretch. Said of the log itself, it keeps partitions beyond from being opened. */
export const inside = (seq: Sql, { from, to }: Pick<Stretch<number | Sql>, 'from' | 'to'>): Sql =>
  sql`${seq} > ${from}::bigint and ${seq} < ${to}::bigint`

/** The row of a number in a stretch. Its limit makes it one probe by number; a join might read the whole stretch. */
export const rowOf = (seq: Sql, stretch: Pick<Stretch<number | Sql>, 'from' | 'to'>): Sql =>
  sql`select * from audit_log where seq = ${seq} and ${inside(sql`seq`, stretch)} limit 1`

/** Opening more partitions than this takes longer than planning a statement that opens only those of its stretch. */
const fewPartitions = 32

/**
 * The parts of a stretch over many partitions, in its order: the first is as long as a partition, and most pages end
 * there. Rows that were numbered since the position was read belong to the part at that end.
 */
export function partsOf(stretch: Stretch, { seq, partition_rows }: Position): Stretch[] {
  const { direction, from } = stretch
  const end = Math.min(stretch.to, seq + 1)
  if (end - from <= fewPartitions * partition_rows) return [stretch]
  const middle = direction === 'asc' ? from + partition_rows : end - partition_rows
  const [older, newer] = [
    { ...stretch, to: middle + 1 },
    { ...stretch, from: middle },
  ]
  return direction === 'asc' ? [{ ...older, isNarrow: true }, newer] : [{ ...newer, isNarrow: true }, older]
}

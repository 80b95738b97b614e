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
  /** It goes over many partitions. */
  isWide?: boolean
}

/** Above every number that a row can have. */
export const seqEnd = 2 ** 53

/** Whether a number is in a stretch. Said of the log itself, it keeps partitions beyond from being opened. */
export const inside = (seq: Sql, { from, to }: Pick<Stretch<number | Sql>, 'from' | 'to'>): Sql =>
  sql`${seq} > ${from}::bigint and ${seq} < ${to}::bigint`

/** The row of a number in a stretch. Its limit makes it one probe by number; a join might read the whole stretch. */
export const rowOf = (seq: Sql, stretch: Pick<Stretch<number | Sql>, 'from' | 'to'>): Sql =>
  sql`select * from audit_log where seq = ${seq} and ${inside(sql`seq`, stretch)} limit 1`

/**
 * Reads rows of a stretch over many partitions. Their numbers come first: the rows lie in few of the partitions, and to
 * open all of them a second time takes as long as to find them.
 */
export async function readApart<Row>(
  db: Pick<Database, 'rows'>,
  numbers: Sql,
  stretch: Stretch,
  rowsOf: (numbers: Sql, stretch: Stretch) => Sql,
): Promise<Row[]> {
  for (let isAgain = false; ; isAgain = true) {
    const found = (await db.rows<{ seq: number }>(numbers)).map(({ seq }) => seq)
    if (found.length === 0) return []
    const near = { ...stretch, from: Math.min(...found) - 1, to: Math.max(...found) + 1 }
    const rows = await db.rows<Row>(rowsOf(sql`select unnest(${found}::bigint[]) as seq`, near))
    // Fewer if retention came by in between; then further rows take their place.
    if (rows.length === found.length || isAgain) return rows
  }
}

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
  const older = { ...stretch, to: middle + 1 }
  const newer = { ...stretch, from: middle }
  const [first, rest] = direction === 'asc' ? [older, newer] : [newer, older]
  return [
    { ...first, isNarrow: true },
    { ...rest, isWide: true },
  ]
}

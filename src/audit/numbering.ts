import { type Database, type Sql, sql } from '../db/db.ts'
import { hasReason } from '../errors.ts'

/** How far the log is numbered. */
export type Position = {
  /** The highest number given, as of a moment ago. */
  seq: number
  /** Numbers per partition, about. */
  partition_rows: number
}

const numberedMax = 10_000

type Log = Pick<Database, 'one' | 'readOnly' | 'replicas'>

/** Moves committed rows into the log, numbered in the order in which they became visible, until `stop`. */
export const numberRows = (db: Log, stop?: AbortSignal): Promise<Position> => moveAll(db, move, stop)

/**
 * Readers of the log call this first so that callers see their own writes. On a full disk, what cannot be numbered
 * waits, and the log can be read without it.
 */
export const numberForReading = (db: Log): Promise<Position> =>
  moveAll(db, (db) =>
    move(db).catch((error) => {
      if (hasReason(error, 'storage_full')) return 0
      throw error
    }),
  )

async function move(db: Log): Promise<number> {
  const { numbered } = await db.one<{ numbered: number }>(
    sql`select audit_number(${sql.raw(numberedMax)}) as numbered`,
  )
  return numbered
}

async function moveAll(db: Log, moveSome: typeof move, stop?: AbortSignal): Promise<Position> {
  for (;;) {
    const { is_waiting, ...position } = await db.readOnly.one<Position & { is_waiting: boolean }>(
      sql`select seq, partition_rows, audit_waiting() as is_waiting from audit_position`,
    )
    // Fewer: all committed rows are numbered, or no partition can be created for them.
    if (is_waiting && !stop?.aborted && (await moveSome(db)) === numberedMax) continue
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
  /** There are many partitions, and the stretch lies within few of them. */
  isNarrow?: boolean
  /** The stretch covers many partitions. */
  isWide?: boolean
}

/** Above every number that a row can have. */
export const seqEnd = 2 ** 53

/**
 * Whether a number is in a stretch. As a condition on the log itself, it lets the planner skip the partitions outside.
 */
export const inside = (seq: Sql, { from, to }: Pick<Stretch<number | Sql>, 'from' | 'to'>): Sql =>
  sql`${seq} > ${from}::bigint and ${seq} < ${to}::bigint`

/** The row of a number in a stretch. Its limit makes it one probe by number; a join might read the whole stretch. */
export const rowOf = (seq: Sql, stretch: Pick<Stretch<number | Sql>, 'from' | 'to'>): Sql =>
  sql`select * from audit_log where seq = ${seq} and ${inside(sql`seq`, stretch)} limit 1`

/**
 * Reads rows of a stretch over many partitions. It reads their numbers first: the rows lie in few partitions, and
 * opening all partitions a second time would take as long as finding the rows.
 */
export async function readApart<Row>(
  db: Pick<Database, 'rows'>,
  numbers: Sql,
  stretch: Stretch,
  rowsOf: (numbers: Sql, stretch: Stretch) => Sql,
): Promise<Row[]> {
  for (let before = ''; ; ) {
    const found = (await db.rows<{ seq: number }>(numbers)).map(({ seq }) => seq)
    if (found.length === 0) return []
    const near = { ...stretch, from: Math.min(...found) - 1, to: Math.max(...found) + 1 }
    const rows = await db.rows<Row>(rowsOf(sql`select unnest(${found}::bigint[]) as seq`, near))
    // Retention may have removed some meanwhile; then further rows take their place, unless nothing changes any more.
    const all = found.join()
    if (rows.length === found.length || all === before) return rows
    before = all
  }
}

/** Opening more partitions than this takes longer than planning a statement that opens only those of its stretch. */
const fewPartitions = 32

/**
 * The parts of a stretch over many partitions, in its order: the first is as long as a partition, and most pages end
 * there. Rows numbered since the position was read belong to the part at the newest end.
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

import type { Config } from '../config/config.ts'
import { type Queryable, type Sql, sql, turnOf } from '../db/db.ts'
import { refusal } from '../errors.ts'

/** What an account stores, or what a write adds to it. */
export type Amount = { cells: number; bytes: number }

/** How much an account may store; null: without a bound. */
export type Quota = { [K in keyof Amount]: number | null }

export const quotaOf = ({ max_account_cells, max_account_bytes }: Config): Quota => ({
  cells: max_account_cells,
  bytes: max_account_bytes,
})

export const noQuota: Quota = { cells: null, bytes: null }

/**
 * Rows per account for concurrent writers, which pick one by their server process. Row 0 is for accounts near their
 * quota. A lone writer uses the row after these. Most accounts never need another, so the write is an update and there
 * is only one row to sum up. Two nodes that both use it wait for each other.
 */
const shards = 64
export const loneShard = sql.raw(shards + 1)
/**
 * Clones have rows of their own, so many that two server processes hardly ever share one: a clone works on a
 * snapshot, and if another writer has changed its row since, it fails instead of waiting.
 */
export const cloneShard = sql`${sql.raw(shards + 2)} + pg_backend_pid() % 4096`

/**
 * How much concurrent writers may add without seeing each other: a thousand cells, or as many bytes as a
 * thousand of the largest. An account that is further than this from its quota does not need to serialize writers.
 */
export const cellsUnderWay: Amount = { cells: 1000, bytes: 268_435_456 }
/** The same for 64 of the largest clones, or for transactions that go on storing. */
export const clonesUnderWay: Amount = { cells: 64_000, bytes: 1_073_741_824 }

/**
 * Transactions that have stored something. Methods of the application may go on and store hundreds of cells in one,
 * unseen by the others until it commits.
 */
const begun = new WeakSet<Queryable>()

/** `shard`: the row that counts it, unless the account is near its quota. */
export type Write = { account_id: string; amount: Amount; quota: Quota; shard: Sql }

/**
 * How a write is counted: in which row (that of its server process, or row 0 under its lock), and how much room must
 * remain after it. A null margin skips the check, because this process has just seen that there is room.
 */
export type Way = { margin: Amount | null; shard: Sql }

/** The row of `cell_usage` that this process counts in. */
export const ownShard = sql`1 + pg_backend_pid() % ${sql.raw(shards)}`

/** The row of an account near its quota, whose lock its writers take one after the other. */
const lockedShard = sql.raw(0)
/** The rows that do not depend on the server process, by number. */
const fixedRows = new Map([
  [lockedShard, 0],
  [loneShard, shards + 1],
])

/**
 * Adding up an account's rows costs a tenth of a small write. After one check, this many writes within this time
 * skip it: the room of `cellsUnderWay` cannot be used up meanwhile, since near the quota only single cells may
 * take it, one after the other, and clones may not.
 */
const uncheckedMax = 20
const uncheckedMs = 250
const seenFar = new Map<string, { left: number; until: number }>()
const seenMax = 10_000

function isSeenFar(account_id: string): boolean {
  const seen = seenFar.get(account_id)
  if (!seen || seen.left === 0 || seen.until < performance.now()) return false
  seen.left -= 1
  return true
}

function see(account_id: string): void {
  if (seenFar.size >= seenMax) seenFar.clear()
  seenFar.set(account_id, { left: uncheckedMax, until: performance.now() + uncheckedMs })
}

/**
 * Common table expressions for a statement that stores cells. `room` has a row if there is room for them;
 * `counted` adds them to the usage if `written`, which the statement puts in between, has a row.
 */
export function room(write: Write, { margin }: Way): Sql {
  const { account_id, amount, quota } = write
  const limits = limitsOf(write)
  if (margin === null || limits.length === 0) return sql`room as (select)`
  const fits = limits.map(
    (limit) =>
      sql`coalesce(sum(${sql.raw(limit)}), 0) + ${amount[limit] + margin[limit]}::bigint <= ${quota[limit]}::bigint`,
  )
  return sql`room as (
    select from cell_usage where account_id = ${account_id}::uuid having ${sql.join(fits, ' and ')})`
}

/** The conflict clause of `insert into cell_usage`: adds to the existing row. */
export const addUp = sql`on conflict (account_id, shard) do update
  set cells = cell_usage.cells + excluded.cells, bytes = cell_usage.bytes + excluded.bytes`

export const counted = ({ account_id, amount }: Write, { shard }: Way): Sql => sql`counted as (
  insert into cell_usage (account_id, shard, cells, bytes)
  select ${account_id}::uuid, ${shard}, ${amount.cells}::bigint, ${amount.bytes}::bigint
  where exists (select from written)
  ${addUp}
)`

/**
 * The same for several writes of one statement: arrays of their amounts and room, the names of their columns in the
 * relation `asked`, and its expressions. An account has room only if all of its writes fit. An entry that counts
 * against no account has no `write`.
 */
export const sharedAmounts = (writes: readonly Counted[]): Sql => {
  const least = (limit: keyof Amount) =>
    writes.map(({ write, way: { margin } }) => {
      const max = write?.quota[limit] ?? null
      return !write || max === null || margin === null || write.amount[limit] <= 0
        ? null
        : max - margin[limit]
    })
  const amounts = (limit: keyof Amount) => writes.map(({ write }) => write?.amount[limit] ?? 0)
  return sql`${writes.map(({ write }) => write?.account_id ?? null)}::uuid[],
    ${writes.map(({ way }) => fixedRows.get(way.shard) ?? null)}::int[],
    ${amounts('cells')}::int[], ${amounts('bytes')}::int[], ${least('cells')}::bigint[], ${least('bytes')}::bigint[]`
}
export type Counted = { write?: Write | undefined; way: Way }
export const sharedAmountColumns = sql`account_id, shard, cells, bytes, cells_max, bytes_max`
export const sharedRoom = sql`room as (
  select account_id from (
    select account_id, sum(cells) as cells, sum(bytes) as bytes, min(cells_max) as cells_max, min(bytes_max) as bytes_max
    from asked where account_id is not null group by account_id
  ) added cross join lateral (
    select coalesce(sum(cells), 0) as cells, coalesce(sum(bytes), 0) as bytes from cell_usage
    where account_id = added.account_id and coalesce(cells_max, bytes_max) is not null
  ) used
  where (cells_max is null or used.cells + added.cells <= cells_max)
    and (bytes_max is null or used.bytes + added.bytes <= bytes_max))`
/** `key`: the column that `asked` and `written` share. */
export const sharedCounted = (key: 'id' | 'nth'): Sql => sql`counted as (
  insert into cell_usage (account_id, shard, cells, bytes)
  select account_id, coalesce(shard, ${ownShard}) as shard, sum(cells), sum(bytes)
    from asked join (select ${sql.raw(key)} from written) written using (${sql.raw(key)})
    where account_id is not null and (cells <> 0 or bytes <> 0)
    group by 1, 2 order by 1, 2
  ${addUp})`

type Store<T> = (way: Way) => Promise<T | undefined>

/** The bounds of the quota that the write counts against. */
const limitsOf = ({ amount, quota }: Write) =>
  (['cells', 'bytes'] as const).filter((limit) => quota[limit] !== null && amount[limit] > 0)

/**
 * Calls `store`, which resolves to undefined if it wrote nothing, unless the account is near its quota, where
 * writers wait for each other.
 */
export async function storeFar<T>(
  db: Queryable,
  write: Write,
  underWay: Amount,
  store: Store<T>,
): Promise<T | undefined> {
  const { account_id, amount, quota, shard } = write
  const limits = limitsOf(write)
  if (limits.length === 0) return await store({ margin: null, shard })
  const most = begun.has(db) ? clonesUnderWay : underWay
  if (limits.some((limit) => (quota[limit] as number) <= most[limit])) return undefined
  const isFar = amount.cells <= 1 && isSeenFar(account_id)
  const stored = await store({ margin: isFar ? null : most, shard })
  if (stored === undefined) return undefined
  begun.add(db)
  // Only a write with a cell has checked both cells and bytes.
  if (!isFar && amount.cells === 1) see(account_id)
  return stored
}

/**
 * Calls `store`: concurrently while the account is far from its quota, else one writer of the account after the
 * other. Refuses if there is no room. Undefined means there was room, but something else kept `store` from writing.
 */
export async function storeWithin<T>(
  db: Queryable,
  write: Write,
  underWay: Amount,
  store: Store<T>,
): Promise<T | undefined> {
  const stored = await storeFar(db, write, underWay, store)
  const limits = limitsOf(write)
  if (stored !== undefined || limits.length === 0) return stored
  const { account_id, amount, quota } = write
  // Locks the row until the end of the transaction, after the clones whose turn it is. With an older snapshot this is a
  // serialization conflict.
  await db.run(sql`
    insert into cell_usage (account_id, shard, cells, bytes)
    select ${account_id}::uuid, 0, 0, 0 from (select pg_advisory_xact_lock(${turnOf(account_id)})) as turn
    ${addUp}`)
  const rest = (limit: keyof Amount): number =>
    amount.cells > 1 && (quota[limit] ?? 0) > cellsUnderWay[limit] ? cellsUnderWay[limit] : 0
  const margin = { cells: rest('cells'), bytes: rest('bytes') }
  const storeLast = () => store({ margin, shard: lockedShard })
  const last = await storeLast()
  if (last !== undefined) return last
  const used = await usage(db, account_id)
  for (const limit of limits) {
    const max = quota[limit] as number
    if (used[limit] + amount[limit] + margin[limit] > max)
      throw refusal('cell_quota_exceeded', { limit, max })
  }
  // Writes that free room do not wait for this lock, so one may have freed some just now; writes that take room wait.
  return await storeLast()
}

const usage = (db: Queryable, account_id: string): Promise<Amount> =>
  db.one<Amount>(sql`
    select coalesce(sum(cells), 0)::bigint as cells, coalesce(sum(bytes), 0)::bigint as bytes
    from cell_usage where account_id = ${account_id}::uuid`)

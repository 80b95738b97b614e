import type { Config } from '../config.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'

/** What an account stores, or what a write adds to it. */
export type Amount = { cells: number; bytes: number }

/** What the cells of an account may come to; null: any number. */
export type Quota = { [K in keyof Amount]: number | null }

export const quotaOf = ({ max_account_cells, max_account_bytes }: Config): Quota => ({
  cells: max_account_cells,
  bytes: max_account_bytes,
})

export const noQuota: Quota = { cells: null, bytes: null }

/** Rows of one account that writers take by their process; row 0 is for those near the limit. */
const shards = 16

/**
 * What writers that are under way at once may add without seeing each other: a thousand of the largest cells. So
 * far from its quota an account's writers need not take turns.
 */
export const cellsUnderWay: Amount = { cells: 1000, bytes: 268_435_456 }
/** The same for sixty-four of the largest clones. */
export const clonesUnderWay: Amount = { cells: 64_000, bytes: 1_073_741_824 }

export type Write = { account_id: string; amount: Amount; quota: Quota }

/** How a write is counted: in the row of its process with room for all others that are under way, or in its turn. */
export type Way = { margin: Amount; shard: Sql }

const inTurn: Way = { margin: { cells: 0, bytes: 0 }, shard: sql`0` }
const atOnce = (margin: Amount): Way => ({ margin, shard: sql`1 + pg_backend_pid() % ${sql.raw(shards)}` })

/**
 * Common table expressions for a statement that stores cells: `room` has a row where there is room for them, and
 * `counted` counts them where `written`, which comes between, has one.
 */
export function room({ account_id, amount, quota }: Write, { margin }: Way): Sql {
  const fits = (['cells', 'bytes'] as const)
    .filter((limit) => quota[limit] !== null && amount[limit] > 0)
    .map((limit) => {
      const used = sql`select coalesce(sum(${sql.raw(limit)}), 0) from cell_usage where account_id = ${account_id}::uuid`
      return sql`(${used}) + ${amount[limit] + margin[limit]}::bigint <= ${quota[limit]}::bigint`
    })
  return sql`room as (select ${fits.length === 0 ? sql.empty : sql`where ${sql.join(fits, ' and ')}`})`
}

export const counted = ({ account_id, amount }: Write, { shard }: Way): Sql => sql`counted as (
  insert into cell_usage (account_id, shard, cells, bytes)
  select ${account_id}::uuid, ${shard}, ${amount.cells}::bigint, ${amount.bytes}::bigint
  where exists (select from written)
  ${addUp}
)`

/** What an `insert into cell_usage` does where the row is there. */
export const addUp = sql`on conflict (account_id, shard) do update
  set cells = cell_usage.cells + excluded.cells, bytes = cell_usage.bytes + excluded.bytes`

/** The row of `cell_usage` that this process counts in. */
export const ownShard = atOnce(cellsUnderWay).shard

/**
 * Stores what `store` says, which gives undefined where there is no room: at once while the account is far from
 * its quota, else behind all others of the account. Undefined: there is room, and something else stood against it.
 */
export async function storeWithin<T>(
  db: Queryable,
  write: Write,
  underWay: Amount,
  store: (way: Way) => Promise<T | undefined>,
): Promise<T | undefined> {
  const { account_id, amount, quota } = write
  const limits = (['cells', 'bytes'] as const).filter((limit) => quota[limit] !== null && amount[limit] > 0)
  const isSmall = limits.some((limit) => (quota[limit] as number) <= underWay[limit])
  const stored = isSmall ? undefined : await store(atOnce(underWay))
  if (stored !== undefined || limits.length === 0) return stored
  // The row is locked until the end of the transaction. In a snapshot that is older, this is a conflict.
  await db.run(sql`
    insert into cell_usage (account_id, shard, cells, bytes) values (${account_id}::uuid, 0, 0, 0) ${addUp}`)
  const last = await store(inTurn)
  if (last !== undefined) return last
  const used = await usage(db, account_id)
  for (const limit of limits) {
    const max = quota[limit] as number
    if (used[limit] + amount[limit] > max) throw refusal('cell_quota_exceeded', { limit, max })
  }
  return undefined
}

const usage = async (db: Queryable, account_id: string): Promise<Amount> =>
  (await db.first<Amount>(sql`
    select coalesce(sum(cells), 0)::bigint as cells, coalesce(sum(bytes), 0)::bigint as bytes
    from cell_usage where account_id = ${account_id}::uuid`)) as Amount

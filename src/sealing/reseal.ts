import type { App } from '../core/app.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { StartError } from '../errors.ts'
import type { Sealing } from './sealing.ts'

/** Every column that holds sealed texts, with the column of the owner of a row. */
const sealedColumns = [
  { table: 'account_totp', column: 'secret_sealed', owner: 'account_id' },
  { table: 'message_outbox', column: 'link_sealed', owner: 'ticket_id' },
] as const
type Column = (typeof sealedColumns)[number]

/** Rows per statement. */
const batch = 500

const startOf = ({ column }: Column, { prefix }: Sealing): Sql =>
  sql`left(${sql.raw(column)}, ${sql.raw(prefix.length)})`

/** Texts before and after the prefix, as two ranges that the index of their first characters serves. */
const underOldKey = (column: Column, sealing: Sealing): Sql => {
  const start = startOf(column, sealing)
  return sql`(${start} < ${sealing.prefix} or ${start} > ${sealing.prefix})`
}

/**
 * Whether an older key has sealed any text, from both ends of that index. A batch of rows by id might read all of them
 * to find none.
 */
async function holdsOld(db: Queryable, sealing: Sealing, column: Column): Promise<boolean> {
  const start = startOf(column, sealing)
  const { first, last } = await db.one<{ first: string | null; last: string | null }>(sql`
    select min(${start}) as first, max(${start}) as last
    from ${sql.raw(column.table)} where ${sql.raw(column.column)} is not null`)
  return [first, last].some((one) => one !== null && one !== sealing.prefix)
}

type Resealing = Pick<App, 'sealing'> & { db: Queryable }

/**
 * Seals again what an older key of the ring has sealed, and returns how many texts. Texts that no key opens, or that
 * change meanwhile, stay as they are.
 */
export async function reseal({ db, sealing }: Resealing, signal?: AbortSignal): Promise<number> {
  if (!sealing) return 0
  let total = 0
  for (const column of sealedColumns) {
    if (!(await holdsOld(db, sealing, column))) continue
    for (let after: string | null | undefined = null; after !== undefined && !signal?.aborted; ) {
      const done: { count: number; last: string | undefined } = await resealBatch(db, sealing, column, after)
      total += done.count
      after = done.last
    }
  }
  return total
}

async function resealBatch(db: Queryable, sealing: Sealing, given: Column, after: string | null) {
  const { table, column, owner } = given
  const [name, text] = [sql.raw(table), sql.raw(column)]
  const beyond = after === null ? sql.empty : sql`and id > ${after}::uuid`
  const rows = await db.rows<{ id: string; owner: string; sealed: string }>(sql`
    select id, ${sql.raw(owner)} as owner, ${text} as sealed from ${name}
    where ${underOldKey(given, sealing)} ${beyond} order by id limit ${sql.raw(batch)}`)
  const anew = rows.flatMap(({ id, owner, sealed }) => {
    const place = { table, row: id, owner }
    const opened = sealing.open(sealed, place)
    return opened === undefined ? [] : [{ id, was: sealed, sealed: sealing.seal(opened, place) }]
  })
  const valuesOf = (key: 'id' | 'was' | 'sealed'): string[] => anew.map((one) => one[key])
  const count = await db.run(sql`
    update ${name} t set ${text} = anew.sealed
    from unnest(${valuesOf('id')}::uuid[], ${valuesOf('was')}::text[], ${valuesOf('sealed')}::text[])
      anew (id, was, sealed)
    where t.id = anew.id and t.${text} = anew.was`)
  return { count, last: rows.length < batch ? undefined : rows.at(-1)?.id }
}

/** How many texts are not sealed by the first key. */
export async function countUnderOldKeys({ db, sealing }: Pick<App, 'db' | 'sealing'>): Promise<number> {
  if (!sealing) return 0
  const counts = sealedColumns.map(
    (column) => sql`(select count(*) from ${sql.raw(column.table)} where ${underOldKey(column, sealing)})`,
  )
  return (await db.one<{ left: number }>(sql`select ${sql.join(counts, ' + ')} as left`)).left
}

/** Refuses to start without the ring while second factors exist, so that none is skipped because its key is gone. */
export async function requireRing({ db, sealing }: Pick<App, 'db' | 'sealing'>): Promise<void> {
  if (sealing) return
  const { needed } = await db.one<{ needed: boolean }>(sql`
    select exists (select from account_totp where confirmed_at is not null) as needed`)
  if (needed)
    throw new StartError(
      'configuration',
      'The database holds TOTP secrets, but CELLKEEP_SECRET_KEYS (option secret_keys) is not set. Set it to the keys that encrypted them.',
      78,
    )
}

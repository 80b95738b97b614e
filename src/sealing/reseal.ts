import type { App } from '../core/app.ts'
import { operation } from '../core/operation.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { StartError } from '../errors.ts'
import type { Sealing } from './sealing.ts'

/** Every column that holds sealed texts, and the column of what a row belongs to. */
const sealedColumns = [
  { table: 'account_totp', column: 'secret_sealed', owner: 'account_id' },
  { table: 'message_outbox', column: 'link_sealed', owner: 'ticket_id' },
] as const
type Column = (typeof sealedColumns)[number]

/** Rows per transaction. */
const batch = 500

/** Both sides of the prefix, as two ranges that the index of its first characters serves. */
const underOldKey = ({ column }: Column, { prefix }: Sealing): Sql => {
  const start = sql`left(${sql.raw(column)}, ${sql.raw(prefix.length)})`
  return sql`(${start} < ${prefix} or ${start} > ${prefix})`
}

/**
 * Seals anew what an older key of the ring has sealed, and returns how many texts. Rows that another transaction has
 * locked, and those that no key opens, stay as they are.
 */
export async function reseal({ db, sealing }: App, signal?: AbortSignal): Promise<number> {
  if (!sealing) return 0
  let total = 0
  for (const column of sealedColumns) {
    for (let after: string | undefined = ''; after !== undefined && !signal?.aborted; ) {
      const from: string = after
      const done = await db.transaction((tx) => resealBatch(tx, sealing, column, from))
      total += done.count
      after = done.last
    }
  }
  return total
}

async function resealBatch(
  db: Queryable,
  sealing: Sealing,
  given: Column,
  after: string,
): Promise<{ count: number; last: string | undefined }> {
  const { table, column, owner } = given
  const [name, text, belongs] = [sql.raw(table), sql.raw(column), sql.raw(owner)]
  const beyond = after === '' ? sql.empty : sql`and id > ${after}::uuid`
  const rows = await db.rows<{ id: string; owner: string; sealed: string }>(sql`
    select id, ${belongs} as owner, ${text} as sealed from ${name}
    where ${underOldKey(given, sealing)} ${beyond} order by id limit ${sql.raw(batch)} for update skip locked`)
  const anew = rows.flatMap(({ id, owner, sealed }) => {
    const place = { table, row: id, owner }
    const opened = sealing.open(sealed, place)
    return opened === undefined ? [] : [{ id, sealed: sealing.seal(opened, place) }]
  })
  await db.run(sql`
    update ${name} t set ${text} = anew.sealed
    from unnest(${anew.map(({ id }) => id)}::uuid[], ${anew.map(({ sealed }) => sealed)}::text[]) anew (id, sealed)
    where t.id = anew.id`)
  return { count: anew.length, last: rows.length < batch ? undefined : rows.at(-1)?.id }
}

/** How many texts are not sealed by the first key. */
export async function countUnderOldKeys({ db, sealing }: Pick<App, 'db' | 'sealing'>): Promise<number> {
  if (!sealing) return 0
  const counts = sealedColumns.map(
    (column) => sql`(select count(*) from ${sql.raw(column.table)} where ${underOldKey(column, sealing)})`,
  )
  return (await db.one<{ left: number }>(sql`select ${sql.join(counts, ' + ')} as left`)).left
}

/** A second factor is never skipped because the key is gone: without the ring the service does not start. */
export async function requireRing({ db, sealing }: Pick<App, 'db' | 'sealing'>): Promise<void> {
  if (sealing) return
  const { needed } = await db.one<{ needed: boolean }>(sql`
    select exists (select from account_totp where confirmed_at is not null) as needed`)
  if (needed)
    throw new StartError(
      'configuration',
      'The database holds TOTP secrets, and CELLKEEP_SECRET_KEYS (option secret_keys) is not set: set the keys that sealed them.',
      78,
    )
}

export const resealSecrets = operation({
  doc: 'Seal anew with the first of CELLKEEP_SECRET_KEYS what older keys have sealed, as the server does in its cleanup.',
  handler: async (_input, { app }) => {
    const resealed = await reseal(app)
    return { resealed, left: await countUnderOldKeys(app) }
  },
  command: {
    name: 'keys reseal',
    phrase: ({ resealed, left }) =>
      left === 0
        ? `Sealed ${resealed} anew. Nothing needs the older keys any more.`
        : `Sealed ${resealed} anew; ${left} are left that no key opens, or that were in use.`,
  },
})

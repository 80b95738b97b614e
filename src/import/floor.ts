import { type Database, type Queryable, sql } from '../db/db.ts'

/** The lock on the row lasts until the commit, so that the floor cannot be cleared before the hashes are seen. */
export const raiseFloor = (db: Queryable, ms: number): Promise<unknown> =>
  db.run(sql`update app_settings set import_floor_ms = greatest(import_floor_ms, ${ms}::int) where id = 1`)

/** Ends the floor of failed logins when the last hash of another system has been replaced. */
export async function clearFloor(db: Database): Promise<void> {
  const isSet = await db.first(sql`select 1 from app_settings where id = 1 and import_floor_ms is not null`)
  if (!isSet) return
  await db.transaction(async (tx) => {
    await tx.run(sql`select 1 from app_settings where id = 1 for no key update`)
    // A statement of its own, which sees what an import committed before the lock was free.
    await tx.run(sql`
      update app_settings set import_floor_ms = null
      where id = 1 and not exists (select from account where hash_foreign)`)
  })
}

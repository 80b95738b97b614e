import { type Queryable, sql } from '../db/db.ts'

/** How long a TOTP secret waits for its first code. */
export const pendingFor = sql.raw(`interval '15 minutes'`)

/** Deletes at most `rows` secrets whose first code never came, and returns how many. */
export const removePendingTotp = (db: Queryable, rows: number): Promise<number> =>
  db.run(sql`
    delete from account_totp where id in (
      select id from account_totp where confirmed_at is null and created_at <= now() - ${pendingFor}
      order by created_at limit ${sql.raw(rows)} for update skip locked
    )`)

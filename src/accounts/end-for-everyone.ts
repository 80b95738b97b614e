import type { App } from '../core/app.ts'
import type { Operating } from '../core/operate.ts'
import { type Sql, sql } from '../db/db.ts'
import type { Credentials } from './ending.ts'
import { lockAccounts } from './locks.ts'

/** Accounts per transaction: few enough that sign-ins are not held up. */
const batch = 200

/** How many credentials ended, of how many accounts. */
export type EndedForEveryone = { count: number; accounts: number }

/**
 * Ends every credential of one kind that exists when the call begins, in one transaction per batch of accounts.
 * Writes one audit row per account that lost something. If it is interrupted, run it again.
 */
export async function endForEveryone(
  app: App,
  { event, table, live }: Credentials,
  operate: <T>(work: (tools: Operating) => Promise<T>) => Promise<T>,
): Promise<EndedForEveryone> {
  const total: EndedForEveryone = { count: 0, accounts: 0 }
  for (let after: string | null = null; ; ) {
    const from: Sql = after === null ? sql.empty : sql`and account_id > ${after}::uuid`
    const next: { account_id: string }[] = await app.db.rows(sql`
      select distinct account_id from ${table} where ${live} ${from}
      order by account_id limit ${sql.raw(batch)}`)
    const ids = next.map(({ account_id }) => account_id)
    if (ids.length === 0) return total
    const ended = await operate(async ({ db, audit, detail }) => {
      await lockAccounts(db, ids)
      const lost = await db.rows<{ account_id: string; count: number }>(sql`
        with ended as (
          delete from ${table} where account_id = any(${ids}::uuid[]) and ${live} returning account_id
        )
        select account_id, count(*) as count from ended group by account_id order by account_id`)
      for (const { account_id, count } of lost)
        audit(event, { count, ...detail }, { target_account_id: account_id })
      return lost
    })
    for (const { count } of ended) total.count += count
    total.accounts += ended.length
    after = ids.at(-1) as string
  }
}

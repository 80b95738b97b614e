import { type Queryable, type Sql, sql } from '../db/db.ts'
import { limiterIp } from '../limits/limiters.ts'

/**
 * The addresses from which an account has signed in lately: wrong passwords from elsewhere do not lock these out.
 * A login renews its address once a day; 90 days outlast three sessions, so a device that signs in whenever its session ends
 * stays known.
 */
const knownDays = 90
/** Per account; the one used longest ago goes first. */
const addressesMax = 16

const days = (count: number): Sql => sql.raw(`interval '${count} days'`)

/**
 * Whether the account with this id, an SQL expression that is never null, has signed in from the address: null if
 * not lately, true if its last sign-in there is of today, so that it need not be remembered again.
 */
export const seenToday = (account: Sql, ip: string): Sql => sql`(
  select last_at > now() - ${days(1)} from account_address
  where account_id = ${account} and address = ${limiterIp(ip)} and last_at > now() - ${days(knownDays)})`

/** Parts of a `with` clause that remember where an account signed in, under the lock of its row. */
export function rememberAddress(account_id: string, ip: string): Sql {
  const address = limiterIp(ip)
  return sql`, known as (
      insert into account_address (account_id, address) values (${account_id}::uuid, ${address})
      on conflict (account_id, address) do update set last_at = now()
    ), forgotten as (
      delete from account_address where account_id = ${account_id}::uuid and address in (
        select address from account_address where account_id = ${account_id}::uuid and address <> ${address}
        order by last_at desc, address offset ${addressesMax - 1}
      )
    )`
}

/** The addresses that limiters may have a bucket of the account for. */
export async function knownAddresses(db: Queryable, account_id: string): Promise<string[]> {
  const rows = await db.rows<{ address: string }>(sql`
    select address from account_address where account_id = ${account_id}::uuid`)
  return rows.map(({ address }) => address)
}

/** Forgets at most so many addresses that have not been used for long; how many. */
export const forgetAddresses = (db: Queryable, rows: number): Promise<number> =>
  db.run(sql`
    delete from account_address where (account_id, address) in (
      select account_id, address from account_address where last_at <= now() - ${days(knownDays)}
      order by last_at limit ${sql.raw(rows)} for update skip locked
    )`)

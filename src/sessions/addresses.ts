import { type Queryable, type Sql, sql } from '../db/db.ts'
import { limiterIp } from '../limits/limiters.ts'

/**
 * An account remembers the addresses it has signed in from: wrong passwords from elsewhere do not lock these out. A
 * login renews its address at most once a day. 90 days cover three sessions, so a device that signs in again whenever
 * its session ends stays known.
 */
const knownDays = 90
/** Per account; the least recently used address is dropped first. */
const addressesMax = 16

const days = (count: number): Sql => sql.raw(`interval '${count} days'`)

/**
 * Whether the address is known to the account with this id (an SQL expression that is never null): null if not,
 * true if it was renewed within a day and needs no renewal, false if it should be renewed.
 */
export const seenToday = (account: Sql, ip: string): Sql => sql`(
  select last_at > now() - ${days(1)} from account_address
  where account_id = ${account} and address = ${limiterIp(ip)} and last_at > now() - ${days(knownDays)})`

/** Parts of a `with` clause that remember the address of a sign-in. The caller holds the account lock. */
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

/** The addresses for which limiters may hold a bucket of the account. */
export async function knownAddresses(db: Queryable, account_id: string): Promise<string[]> {
  const rows = await db.rows<{ address: string }>(sql`
    select address from account_address where account_id = ${account_id}::uuid`)
  return rows.map(({ address }) => address)
}

/** Deletes at most `rows` addresses that are no longer known, and returns how many it deleted. */
export const forgetAddresses = (db: Queryable, rows: number): Promise<number> =>
  db.run(sql`
    delete from account_address where (account_id, address) in (
      select account_id, address from account_address where last_at <= now() - ${days(knownDays)}
      order by last_at limit ${sql.raw(rows)} for update skip locked
    )`)

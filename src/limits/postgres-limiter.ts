import { randomUUID } from 'node:crypto'
import { type Database, type Sql, sql } from '../db/db.ts'
import { repeatCause } from '../db/servers/failure.ts'
import type { Log } from '../log/log.ts'
import { grainOf, type Limiter, type Refused } from './limiter.ts'

type PostgresLimiterOptions = {
  db: Database
  log: Log
  /** Separates its buckets from those of other limiters. */
  name: string
  max: number
  windowMs: number
  /** How long a slot may be held before its process counts as dead. */
  leaseMs?: number
  /** A clock in milliseconds for tests. Default: the clock of the database, which all nodes share. */
  now?: () => number
}

/** No attempt takes this long: its requests, transactions and hashes have much lower time limits. */
const attemptLimitMs = 120_000

/**
 * The store `postgres`: one budget for all nodes of a database, by the clock of the database. Test and take are
 * one statement; while the database is unreachable they reject, so nothing is admitted. As precise as the memory
 * store.
 */
export function createPostgresLimiter(options: PostgresLimiterOptions): Limiter {
  const { db, log, name, max, windowMs, leaseMs = attemptLimitMs, now } = options
  const milliseconds = (ms: number): Sql => sql`make_interval(secs => ${ms / 1000}::float8)`
  const span = milliseconds(windowMs)
  const grain = milliseconds(grainOf(max, windowMs))
  const moment = (): Sql =>
    now === undefined
      ? sql`date_trunc('milliseconds', clock_timestamp())`
      : sql`${new Date(Math.floor(now())).toISOString()}::timestamptz`

  /**
   * Once more if the connection was lost. What was carried out before that counts twice then, as it would if the caller
   * repeated a call that failed.
   */
  const repeated = async <T>(work: (isRepeat: boolean) => Promise<T>): Promise<T> => {
    try {
      return await work(false)
    } catch (error) {
      if (repeatCause(error) !== 'lost') throw error
      await db.primary.repeats('lost')
      return await work(true)
    }
  }
  const freed = (key: string, slot: string): Sql =>
    sql`delete from limiter_charge where limiter = ${name} and key = ${key} and slot = ${slot}::uuid`
  const take = async (key: string, slot: string | null): Promise<Refused | undefined> => {
    const { wait } = await repeated(async (isRepeat) => {
      // A slot that was taken unheard would stand in its own way.
      if (isRepeat && slot !== null) await db.run(freed(key, slot))
      return await db.one<{ wait: number | null }>(sql`
        select limiter_take(${name}, ${key}, ${max}::integer, ${span}, ${grain}, ${milliseconds(leaseMs)},
          ${slot}::uuid ${now === undefined ? sql.empty : sql`, ${moment()}`}) as wait`)
    })
    if (wait === null) return undefined
    // 0: only slots of running attempts are in the way, and it is unknown when they end.
    return wait === 0 ? { ok: false, retryAfter: 1, isPending: true } : { ok: false, retryAfter: wait }
  }
  /** Never rejects, as the attempt has been answered already: a slot that cannot be settled counts as a charge. */
  const settle = async (key: string, slot: string, charge: boolean): Promise<void> => {
    const gone = freed(key, slot)
    const add = sql`select limiter_add(${name}, ${key}, ${span}, ${grain}, ${moment()})`
    try {
      if (charge) await db.run(sql`with gone as (${gone}) ${add}`)
      else await repeated(() => db.run(gone))
    } catch (error) {
      log.error(
        { event: 'limiter_slot', err: error, limiter: name },
        'a limiter slot could not be settled; it counts as a charge',
      )
    }
  }

  return {
    async hold(key) {
      const slot = randomUUID()
      const refused = await take(key, slot)
      if (refused) return refused
      let settled: Promise<void> | undefined
      const end = (charge: boolean): Promise<void> => {
        settled ??= settle(key, slot, charge)
        return settled
      }
      return { ok: true, charge: () => end(true), drop: () => end(false) }
    },
    charge: async (key) => (await take(key, null)) ?? { ok: true },
    spend: async (key, count) => {
      await db.run(sql`
        insert into limiter_charge (limiter, key, at, charges, expires_at)
        select ${name}, ${key}, at, ${count}::integer, at + ${span} + ${grain} from (select ${moment()} as at) spent`)
    },
    clear: async (...keys) => {
      await db.run(
        sql`delete from limiter_charge where limiter = ${name} and key = any(${keys}) and slot is null`,
      )
    },
    async count(key) {
      const { count } = await db.one<{ count: number }>(sql`
        select coalesce(sum(charges), 0)::integer as count from limiter_charge
        where limiter = ${name} and key = ${key} and expires_at > ${moment()}`)
      return count
    },
  }
}

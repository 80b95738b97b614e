import { ServiceError } from '../errors.ts'
import { currentWork, siteOf } from '../observe/work.ts'
import { batched } from './batched.ts'
import { afterSending, confirmed, type Held } from './held.ts'
import type { Pool } from './pool.ts'
import { repeatCause, unavailable } from './servers/failure.ts'
import { type Sql, sql } from './sql.ts'
import { isWornOut } from './statement-names.ts'

/**
 * A write that shares one statement and its commit with other writes, requested in the same event loop turn or while
 * others run. Entries that the statement leaves out, or all if it fails, are then written alone.
 */
export type SharedWrite<E, V extends Stored> = {
  /** Stores the entries that it can, and returns a row for each stored one. */
  statement(entries: readonly E[]): Sql
  /** Gets the rows after the commit. */
  stored(rows: readonly V[], entries: readonly E[]): void
  /** Max entries of one statement; with their size, it bounds how long an entry waits for the others. */
  max: number
}

/** `nth`, from 1: which entry was stored. */
export type Stored = { nth: number }

/**
 * For the `from` of a shared statement: if one entry meets a row lock, the statement soon fails, so that the others do
 * not wait long. Each entry then runs alone and may wait as usual.
 */
export const briefly = sql.raw("set_config('lock_timeout', '100ms', true) as briefly")

export type Share = <E, V extends Stored>(
  held: Held,
  /** Entries with the same `by` share statements. */
  by: object,
  entry: E,
  make: () => SharedWrite<E, V>,
) => Promise<V | undefined>

/** Resolves to the row if it was stored and committed, and to undefined if nothing of the entry was done. */
export function sharedWrites(pool: Pool): Share {
  const writers = new WeakMap<object, (entry: unknown) => Promise<unknown>>()

  return async <E, V extends Stored>(held: Held, by: object, entry: E, make: () => SharedWrite<E, V>) => {
    const writer = (writers.get(by) ?? writerOf(make())) as (entry: E) => Promise<V | undefined>
    writers.set(by, writer as (entry: unknown) => Promise<unknown>)
    held.lone = 'sent'
    try {
      const row = await writer(entry)
      held.lone = row ? 'committed' : 'none'
      return row
    } catch (error) {
      // All entries got this error; each call answers with one of its own.
      if (error instanceof ServiceError) throw unavailable(error.cause)
      const refused = afterSending(error)
      if (refused instanceof ServiceError && refused.outcome === 'unknown') throw refused
      held.lone = 'none'
      return undefined
    }
  }

  function writerOf<E, V extends Stored>({ statement, stored, max }: SharedWrite<E, V>) {
    // Named after the method that asks first.
    const site = siteOf(currentWork())
    const { observer, primary } = pool
    const send = async (entries: E[]): Promise<V[]> => {
      const slot = await pool.connect()
      try {
        const { rows } = await confirmed(slot, () => pool.sendAlone(slot, statement(entries), site))
        slot.release(isWornOut(slot))
        return rows
      } catch (error) {
        slot.release(repeatCause(error) !== undefined)
        throw error
      }
    }
    const write = async (entries: E[]): Promise<Map<E, V>> => {
      const rows = await send(entries)
      stored(rows, entries)
      return new Map(rows.map((row) => [entries[row.nth - 1] as E, row]))
    }
    return batched(write, { line: primary, watched: { site, observer }, max })
  }
}

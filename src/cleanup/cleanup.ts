import { numberRows } from '../audit/numbering.ts'
import type { App } from '../core/app.ts'
import { type Sql, sql } from '../db/db.ts'
import { clearFloor } from '../import/floor.ts'
import { removeNodes } from '../nodes/nodes.ts'
import { watchJob } from '../observe/job.ts'
import { reseal } from '../sealing/reseal.ts'
import { removePendingTotp } from '../second-factor/pending.ts'
import { forgetAddresses } from '../sessions/addresses.ts'
import { dropPartitions, makePartitions } from './partitions.ts'
import {
  bringForwardMessages,
  expireOffers,
  forgetKeys,
  removeAuditRows,
  removeChargesAhead,
  removeMessages,
  removeTickets,
} from './steps.ts'
import { removeTombstones } from './tombstones.ts'

export type Cleaned = {
  /** False if another cleanup was running; this call did nothing then. */
  ran: boolean
  expired_offers: number
  expired_sessions: number
  expired_tokens: number
  /** Charges of limiters that use the database as their store. */
  expired_charges: number
  /** Addresses from which the account has not signed in for 90 days. */
  expired_addresses: number
  /** One-time links that ended more than 30 days ago. */
  removed_tickets: number
  /** Messages that were finished 7 days ago. */
  removed_messages: number
  /** Secrets that were sealed by an older key. */
  resealed_secrets: number
  /** Cells deleted more than `cell_tombstone_retention_days` ago. */
  removed_cells: number
  /** Audit rows older than `audit_retention_days`. */
  removed_audit_rows: number
}

/** Rows per transaction: few enough that no request waits long for it. */
const batchRows = 1000

const nothing: Readonly<Cleaned> = {
  ran: false,
  expired_offers: 0,
  expired_sessions: 0,
  expired_tokens: 0,
  expired_charges: 0,
  expired_addresses: 0,
  removed_tickets: 0,
  removed_messages: 0,
  resealed_secrets: 0,
  removed_cells: 0,
  removed_audit_rows: 0,
}

/** How long an expired token stays listed, so that its owner sees why it stopped working. */
const tokenGraceDays = 30

/**
 * Removes what has expired, in batches that each commit. One cleanup per database runs at a time; a second call
 * does nothing. Nothing relies on it: an expired row has no authority anyway. `signal` stops it after the current
 * batch.
 */
export async function sweep(app: App, { signal }: { signal?: AbortSignal } = {}): Promise<Cleaned> {
  const { db } = app
  const done = await db.exclusively('cellkeep cleanup', async (lost) => {
    const stop = AbortSignal.any(signal ? [signal, lost] : [lost])
    const repeat = async (batch: () => Promise<number>): Promise<number> => {
      let total = 0
      for (let count = batchRows; count === batchRows && !stop.aborted; total += count) count = await batch()
      return total
    }
    const removeCells = async (days: number): Promise<number> => {
      // Number rows first: a row numbered after its cell is gone would add to its timeline, which nothing deletes.
      await numberRows(db, stop)
      return await removeTombstones(db, days, stop)
    }
    const removeAudit = async (days: number): Promise<number> => {
      // Rows get their numbers when they are read, so number those of a log that nobody reads.
      await numberRows(db, stop)
      const { dropped, whole } = await dropPartitions(db, days, stop)
      const removed_audit_rows = dropped + (await repeat(() => removeAuditRows(db, days, whole, batchRows)))
      if (removed_audit_rows > 0) app.log.info({ removed_audit_rows }, 'old audit rows removed')
      return removed_audit_rows
    }
    await repeat(() => removeNodes(db))
    // Not in the result: these rows mean nothing to an operator.
    await repeat(() => db.run(expired(sql`sign_in_flow`, sql`expires_at <= now()`)))
    await repeat(() => removePendingTotp(db, batchRows))
    await repeat(() => forgetKeys(db, batchRows))
    await repeat(() => bringForwardMessages(db, batchRows))
    const { cell_tombstone_retention_days, audit_retention_days } = app.config
    await clearFloor(db)
    await makePartitions(app)
    const cleaned: Cleaned = {
      ran: true,
      expired_sessions: await repeat(() => db.run(expired(sql`auth_session`, sql`expires_at <= now()`))),
      expired_tokens: await repeat(() =>
        db.run(
          expired(sql`api_token`, sql`expires_at <= now() - ${sql.raw(`interval '${tokenGraceDays} days'`)}`),
        ),
      ),
      expired_charges:
        (await repeat(() => db.run(expired(sql`limiter_charge`, sql`expires_at <= now()`)))) +
        (await repeat(() => removeChargesAhead(db, batchRows))),
      expired_addresses: await repeat(() => forgetAddresses(db, batchRows)),
      removed_tickets: await repeat(() => removeTickets(db, batchRows)),
      removed_messages: await repeat(() => removeMessages(db, batchRows)),
      resealed_secrets: await reseal(app, stop),
      removed_cells:
        cell_tombstone_retention_days === null ? 0 : await removeCells(cell_tombstone_retention_days),
      removed_audit_rows: audit_retention_days === null ? 0 : await removeAudit(audit_retention_days),
      // Last, because it fails if its audit rows cannot be written; everything else is done by then.
      expired_offers: await repeat(() => expireOffers(db, batchRows)),
    }
    // A reader numbers all that were written since the last one read: let nobody wait for those of weeks.
    await numberRows(db, stop)
    return cleaned
  })
  return done ?? { ...nothing }
}

/** Skips rows that another transaction has locked; the next run takes them. */
const expired = (table: Sql, when: Sql): Sql => sql`
  delete from ${table} where id in (
    select id from ${table} where ${when} order by expires_at limit ${sql.raw(batchRows)} for update skip locked
  )`

/**
 * Runs the cleanup every `cleanup_interval_s`, counted from the end of the previous run, and logs failures.
 * The returned function stops it and resolves when the current batch is done.
 */
export function startCleanup(app: App): () => Promise<void> {
  const seconds = app.config.cleanup_interval_s
  if (seconds === null) return async () => {}
  // Reported from the start, so that an alert can notice missing runs.
  app.observer.add('job_runs_total', 0, 'cleanup', 'ok')
  const ending = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  const run = async (): Promise<void> => {
    try {
      const { ran, ...counts } = await watchJob(
        app.observer,
        'cleanup',
        // A newer version may keep what this one would remove.
        async () => (app.node.isBehind ? nothing : await sweep(app, { signal: ending.signal })),
        ({ ran, ...counts }) => (ran ? Object.values(counts).reduce((all, count) => all + count) : undefined),
      )
      if (Object.values(counts).some((count) => count > 0)) app.log.info(counts, 'expired rows removed')
      else app.log.debug({ ran }, 'nothing to clean up')
    } catch (error) {
      app.log.error(
        { event: 'cleanup_failed', err: error },
        'the cleanup failed; the next one continues where it stopped',
      )
    }
    wait()
  }
  const wait = (): void => {
    if (ending.signal.aborted) return
    timer = setTimeout(() => {
      running = run()
    }, seconds * 1000).unref()
  }
  wait()
  return async () => {
    ending.abort()
    clearTimeout(timer)
    await running
  }
}

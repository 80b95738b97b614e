import type { Audit, AuditRow, Envelope } from '../audit/audit.ts'
import { isOutcomeUnknown, neverBegan, type Queryable } from '../db/db.ts'
import { type Reason, refusal, ServiceError } from '../errors.ts'
import type { EventType, FailureMetadata } from '../events.ts'
import type { App } from './app.ts'

/** Builds a refusal of the reasons that a declaration lists: `throw fail('cell_not_found')`. */
export type Fail<E extends Reason> = (reason: E, extra?: Record<string, unknown>) => ServiceError

export const fail: Fail<Reason> = refusal

/** What a mutation works with; `db` is its transaction. */
export type Work = {
  db: Queryable
  /** Runs after a successful commit, isolated from its siblings; dropped on rollback (contract 1, section 10). */
  afterCommit(effect: () => void | Promise<void>): void
}

/** The failure rows that refusals of contract 3, section 8.5 leave; keyed by the error, which is thrown once. */
const failureRows = new WeakMap<
  ServiceError,
  { metadata: Record<string, unknown>; envelope: Partial<Envelope> }
>()

/** A refusal that leaves a failure row of the method's event; its envelope names ids of stored rows only. */
export function recorded<K extends EventType>(
  _event: K,
  error: ServiceError,
  metadata: FailureMetadata<K> & Record<string, unknown>,
  envelope: Partial<Envelope> = {},
): ServiceError {
  failureRows.set(error, { metadata, envelope })
  return error
}

/**
 * One transaction with its audit rows: success rows inside it, and one failure row outside it when an
 * unexpected error or a failed commit undoes it (contract 3, section 8.4).
 */
export async function mutate<T>(
  app: App,
  event: EventType,
  envelope: Envelope,
  work: (tools: Work & { audit: Audit }) => Promise<T>,
): Promise<T> {
  let rows: AuditRow[] = []
  try {
    return await app.db.transaction(async (tx) => {
      rows = []
      const audit: Audit = (event_type, metadata, own) => {
        rows.push({ event_type, outcome: 'success', ...envelope, ...own, metadata })
      }
      tx.beforeCommit(() => app.audit.statement(rows), app.audit.settle)
      return await work({ db: tx, audit, afterCommit: tx.afterCommit })
    })
  } catch (error) {
    const refused = error instanceof ServiceError ? failureRows.get(error) : undefined
    if (refused) {
      await app.audit.failure({
        event_type: event,
        outcome: 'failure',
        ...envelope,
        ...refused.envelope,
        metadata: refused.metadata,
      })
    } else if (leavesRow(error)) {
      const own = rows.find((row) => row.event_type === event)
      await app.audit.failure({
        ...(own ?? { event_type: event, ...envelope, metadata: { reason: 'rolled_back' } }),
        outcome: 'failure',
      })
    }
    throw error
  }
}

/**
 * A refusal leaves no row; an unexpected error or failed commit does, unless nobody knows how it ended. Without
 * a connection there was no attempt, and a second wait for one would only hold up the answer.
 */
function leavesRow(error: unknown): boolean {
  if (isOutcomeUnknown(error) || neverBegan(error)) return false
  if (!(error instanceof ServiceError)) return true
  return error.data.reason === 'timeout' || error.data.reason === 'service_unavailable'
}

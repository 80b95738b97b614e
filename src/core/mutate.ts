import type { Audit, AuditRow, Envelope } from '../audit/audit.ts'
import { isOutcomeUnknown, neverBegan, type Queryable } from '../db/db.ts'
import { type Reason, refusal, ServiceError } from '../errors.ts'
import type { BuiltinEventType, EventType, FailureMetadata } from '../events.ts'
import type { Notification, Notify } from '../notifications.ts'
import { closingsOf } from '../realtime/closings.ts'
import type { App } from './app.ts'

/** Builds a refusal of the reasons that a declaration lists: `throw fail('cell_not_found')`. */
export type Fail<E extends Reason> = (reason: E, extra?: Record<string, unknown>) => ServiceError

export const fail: Fail<Reason> = refusal

/** What a mutation works with; `db` is its transaction. */
export type Work = {
  db: Queryable
  audit: Audit
  /** Sends a notification to the sockets of an account, on every node, after the commit. */
  notify: Notify
  /** Runs after a successful commit, isolated from its siblings; dropped on rollback (contract 1, section 10). */
  afterCommit(effect: () => void | Promise<void>): void
}

/** The failure rows that refusals of contract 3, section 8.5 leave; keyed by the error, which is thrown once. */
const failureRows = new WeakMap<
  ServiceError,
  { event_type: EventType; metadata: Record<string, unknown>; envelope: Partial<Envelope> }
>()

/**
 * A refusal that leaves a failure row of this event, whichever transaction it was called within; its envelope
 * names ids of stored rows only.
 */
export function recorded<K extends BuiltinEventType>(
  event_type: K,
  error: ServiceError,
  metadata: FailureMetadata<K> & Record<string, unknown>,
  envelope: Partial<Envelope> = {},
): ServiceError {
  failureRows.set(error, { event_type, metadata, envelope })
  return error
}

const committing = new WeakSet<ServiceError>()

/** A refusal that commits what was done before it (contract 1, section 10, rule 1: an offer found without authority). */
export function committed(error: ServiceError): ServiceError {
  committing.add(error)
  return error
}

/** Who mutates: the envelope of its rows, and the WebSocket call that asked, if one did. */
export type Mutator = {
  envelope: Envelope
  origin?: object | undefined
  /** Of a library call or operator command: stands in the row of one that was undone. */
  via?: string | undefined
  /** All statements of the transaction see one state of the database. */
  snapshot?: boolean | undefined
}

/**
 * One transaction with its audit rows: success rows inside it, and one failure row outside it when an
 * unexpected error or a failed commit undoes it (contract 3, section 8.4). What it means for live connections
 * is published after the commit.
 */
export async function mutate<T>(
  app: App,
  event: EventType,
  { envelope, origin, via, snapshot }: Mutator,
  work: (tools: Work) => Promise<T>,
): Promise<T> {
  let rows: AuditRow[] = []
  const isolation = { snapshot }
  try {
    const outcome = await app.db.transaction(async (tx) => {
      rows = []
      const notifications: Notification[] = []
      const audit: Audit = (event_type, metadata, own) => {
        rows.push({ event_type, outcome: 'success', ...envelope, ...own, metadata })
      }
      const notify: Notify = (account_id, method, params) => {
        notifications.push({ account_id, method, params })
      }
      tx.beforeCommit(() => app.audit.statement(rows), app.audit.settle)
      tx.afterCommit(() => {
        if (rows.length > 0 || notifications.length > 0)
          app.hub.publish({ notifications, closings: closingsOf(rows), wroteAudit: rows.length > 0, origin })
      })
      try {
        return { result: await work({ db: tx, audit, notify, afterCommit: tx.afterCommit }) }
      } catch (error) {
        if (error instanceof ServiceError && committing.has(error)) return { refused: error }
        throw error
      }
    }, isolation)
    if (outcome.refused) throw outcome.refused
    return outcome.result as T
  } catch (error) {
    if (error instanceof ServiceError && committing.has(error)) throw error
    const refused = error instanceof ServiceError ? failureRows.get(error) : undefined
    if (refused) {
      await app.audit.failure({
        event_type: refused.event_type,
        outcome: 'failure',
        ...envelope,
        ...refused.envelope,
        metadata: refused.metadata,
      })
    } else if (leavesRow(error)) {
      const own = rows.find((row) => row.event_type === event)
      await app.audit.failure({
        ...(own ?? {
          event_type: event,
          ...envelope,
          metadata: { reason: 'rolled_back', ...(via && { via }) },
        }),
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

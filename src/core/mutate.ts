import { type Audit, type AuditRow, type Envelope, envelopeOf } from '../audit/audit.ts'
import type { Queryable, Transaction } from '../db/db.ts'
import { type Reason, refusal, ServiceError } from '../errors.ts'
import type { AttemptMetadata, EventType } from '../events.ts'
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
  /** Runs after a successful commit, isolated from its siblings; dropped on rollback */
  afterCommit(effect: () => void | Promise<void>): void
}

/**
 * A refusal that leaves a failure row of this event, whichever mutation or transaction it is thrown in:
 * `throw recorded('invite_delete', fail('invite_not_found'), { … })`. Its metadata and envelope name what is
 * stored, never what the caller typed.
 */
export function recorded<K extends EventType>(
  event_type: K,
  error: ServiceError,
  metadata: AttemptMetadata<K>,
  envelope: Partial<Envelope> = {},
): ServiceError {
  error.failureRow = { event_type, metadata, envelope }
  return error
}

/** A refusal that commits what was done before it: an offer found without authority is superseded. */
export function committed(error: ServiceError): ServiceError {
  error.commits = true
  return error
}

/** Who mutates: the envelope of its rows, and the WebSocket call that asked, if one did. */
export type Mutator = {
  envelope: Envelope
  /** True: the service itself found that actor and account of the envelope belong together. */
  isCaller?: boolean
  origin?: object | undefined
  /** Of a library call or operator command: stands in the row of one that was undone. */
  via?: string | undefined
  /** All statements of the transaction see one state of the database. */
  snapshot?: boolean | undefined
}

/**
 * One transaction with its audit rows: success rows inside it. Where it is refused or undone, they are
 * written outside it as failures. What it means for live connections is published after the commit.
 */
export async function mutate<T>(
  app: App,
  event: EventType,
  mutator: Mutator,
  work: (tools: Work) => Promise<T>,
): Promise<T> {
  const { envelope, isCaller, snapshot } = mutator
  const caller = isCaller ? envelope : undefined
  let rows: AuditRow[] = []
  try {
    const outcome = await app.db.transaction(
      async (tx) => {
        // Those of a run that a conflict undid are not of this one.
        rows = []
        return await run(app, tx, { rows, ...mutator, caller }, work)
      },
      { snapshot },
    )
    if ('refused' in outcome) throw outcome.refused
    return outcome.result
  } catch (error) {
    const left = rowsLeft(error, event, rows, mutator)
    if (left.length > 0) await app.audit.failure(left, caller)
    throw error
  }
}

type Run = Mutator & { rows: AuditRow[]; caller: Envelope | undefined }

/** The work, with what its commit writes and then publishes. */
async function run<T>(
  app: App,
  tx: Transaction,
  { rows, envelope, caller, origin }: Run,
  work: (tools: Work) => Promise<T>,
): Promise<{ result: T } | { refused: ServiceError }> {
  const notifications: Notification[] = []
  const audit: Audit = (event_type, metadata, own) => {
    rows.push({ event_type, outcome: 'success', ...envelopeOf(envelope, own), metadata })
  }
  const notify: Notify = (account_id, method, params) => {
    notifications.push({ account_id, method, params })
  }
  tx.beforeCommit(
    () => app.audit.statement(rows, caller),
    (answer) => app.audit.settle(answer, rows),
  )
  tx.afterCommit(() => {
    if (rows.length > 0 || notifications.length > 0)
      app.hub.publish({ notifications, closings: closingsOf(rows), wroteAudit: rows.length > 0, origin })
  })
  try {
    return { result: await work({ db: tx, audit, notify, afterCommit: tx.afterCommit }) }
  } catch (error) {
    if (error instanceof ServiceError && error.commits) return { refused: error }
    throw error
  }
}

/**
 * What a mutation leaves that did not come about: all that it had recorded, then the row of its refusal, or
 * one of its own event where something unexpected undid it before it had recorded that.
 */
function rowsLeft(
  error: unknown,
  event: EventType,
  rows: readonly AuditRow[],
  { envelope, via }: Mutator,
): AuditRow[] {
  const { commits, outcome, failureRow } =
    error instanceof ServiceError ? error : ({} as Partial<ServiceError>)
  // Committed already, or perhaps: nobody knows.
  if (commits || outcome === 'unknown') return []
  // Without a connection there was no attempt, and a second wait for one would only hold up the answer.
  if (outcome === 'never_began' && rows.length === 0) return []
  const left = rows.map((row): AuditRow => ({ ...row, outcome: 'failure' }))
  if (failureRow)
    left.push({
      event_type: failureRow.event_type,
      outcome: 'failure',
      ...envelopeOf(envelope, failureRow.envelope),
      metadata: failureRow.metadata,
    })
  else if (isUnexpected(error) && !left.some(({ event_type }) => event_type === event))
    left.push({
      event_type: event,
      outcome: 'failure',
      ...envelope,
      metadata: { reason: 'rolled_back', ...(via && { via }) },
    })
  return left
}

const isUnexpected = (error: unknown): boolean =>
  !(error instanceof ServiceError) ||
  error.data.reason === 'timeout' ||
  error.data.reason === 'service_unavailable'

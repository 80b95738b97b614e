import { type Audit, type AuditRow, type AuditSubject, noSubject } from '../audit/audit.ts'
import { type Queryable, sql, type Transaction } from '../db/db.ts'
import { anyOf } from '../db/unplanned.ts'
import { ServiceError } from '../errors.ts'
import type { AttemptMetadata, EventType } from '../events.ts'
import { crowdOf } from '../limits/limiters.ts'
import type { Notification, Notify } from '../notifications.ts'
import { closingsOf } from '../realtime/committed.ts'
import type { Reason } from '../reasons.ts'
import type { App } from './app.ts'
import { type Single, singleOf } from './single.ts'

/** Builds a refusal with one of the reasons that a declaration lists: `throw fail('cell_not_found')`. */
export type Fail<E extends Reason> = (reason: E, extra?: Record<string, unknown>) => ServiceError

/** The tools of a mutation; `db` is its transaction. */
export type Work = {
  db: Queryable
  audit: Audit
  single: Single
  /** Sends a notification to the sockets of an account, on every node, after the commit. */
  notify: Notify
  /** Runs after a successful commit; a failing effect does not stop the others. Dropped on rollback. */
  afterCommit(effect: () => void | Promise<void>): void
}

/**
 * Makes a refusal leave a failure row of this event, whichever mutation or transaction throws it:
 * `throw recorded('invite_delete', fail('invite_not_found'), { … })`. Metadata and subject name stored values
 * only, never the caller's input.
 */
export function recorded<K extends EventType>(
  event_type: K,
  error: ServiceError,
  metadata: AttemptMetadata<K>,
  subject: Partial<AuditSubject> = {},
): ServiceError {
  error.failureRow = { event_type, metadata, subject }
  return error
}

/** Makes a refusal commit the writes before it: an offer found to lack authority, for example, is superseded. */
export function committed(error: ServiceError): ServiceError {
  error.commits = true
  return error
}

/** Who mutates: the subject of the audit rows, and the WebSocket message behind it, if any. */
type Mutator = {
  subject: AuditSubject
  /** True: the service has verified that the actor of the subject belongs to its account. */
  isCaller?: boolean
  origin?: object | undefined
  /** For a library call or operator command: recorded in the audit row if the transaction is rolled back. */
  via?: string | undefined
  /** All statements of the transaction see one snapshot of the database. */
  snapshot?: boolean | undefined
  /** False: the work never runs a second time. */
  repeat?: boolean | undefined
}

/**
 * Runs one transaction with its audit rows, when it is the turn of the caller for a connection of the pool. Success
 * rows are written inside it; if it is refused or rolled back, they are written outside it as failures. Live
 * connections are told after the commit.
 */
export async function mutate<T>(
  app: App,
  event: EventType,
  mutator: Mutator,
  work: (tools: Work) => Promise<T>,
): Promise<T> {
  const { account_id, ip } = mutator.subject
  const caller = account_id ?? (ip && crowdOf(ip))
  const act = () => mutateAtOnce(app, event, mutator, work)
  return caller ? await app.gate.run(caller, act) : await act()
}

/** The same without a turn, for operators and library calls: they are no callers that others are protected from. */
export async function mutateAtOnce<T>(
  app: App,
  event: EventType,
  mutator: Mutator,
  work: (tools: Work) => Promise<T>,
): Promise<T> {
  const { subject, isCaller, snapshot, repeat } = mutator
  const caller = isCaller ? subject : undefined
  let rows: AuditRow[] = []
  let isCommitted = false
  try {
    const outcome = await app.db.transaction(
      async (tx) => {
        // The transaction is retried after a conflict; drop the rows of the attempt that was rolled back.
        rows = []
        tx.afterCommit(() => {
          isCommitted = true
        })
        return await run(app, tx, { rows, ...mutator, caller }, work)
      },
      { snapshot, repeat, account_id: subject.account_id },
    )
    if ('refused' in outcome) throw outcome.refused
    return outcome.result
  } catch (error) {
    const isUnknown = error instanceof ServiceError && error.outcome === 'unknown'
    if (isUnknown && !isCommitted && closingsOf(rows).length > 0) app.hub.doubt()
    const left = isCommitted || isUnknown ? [] : rowsLeft(error, event, rows, mutator)
    if (left.length > 0) await app.audit.failure(left, caller)
    throw error
  }
}

/** Max audit rows per statement: tens of thousands would take longer than a statement may. */
const rowsMax = 5_000

type Run = Mutator & { rows: AuditRow[]; caller: AuditSubject | undefined }

/** Runs the work and registers what is written with the commit and published after it. */
async function run<T>(
  app: App,
  tx: Transaction,
  { rows, subject, caller, origin }: Run,
  work: (tools: Work) => Promise<T>,
): Promise<{ result: T } | { refused: ServiceError }> {
  const notifications: Notification[] = []
  let toActors: [actor_id: string, Notification][] | undefined
  let hasEnded = false
  const checkOpen = (): void => {
    if (hasEnded)
      throw new Error('The transaction has ended: await all that records, notifies or registers effects.')
  }
  const recordIn =
    (rows: AuditRow[]): Audit =>
    (event_type, metadata, own) => {
      checkOpen()
      rows.push({ event_type, outcome: 'success', ...subjectOf(subject, own), metadata })
    }
  const record = recordIn(rows)
  const audit: Audit = (...row) => {
    if (tx.isCommitted()) throw new Error('The mutation is committed: record its audit rows in `single`.')
    record(...row)
  }
  const single = singleOf(app, tx, { rows, caller, recordIn })
  const notify: Notify = (to, method, params) => {
    checkOpen()
    const checked = app.registry.notifications.sendable(method, params) as typeof params
    const one = { account_id: typeof to === 'string' ? to : '', method, params: checked }
    notifications.push(one)
    if (typeof to === 'string') return
    toActors ??= []
    toActors.push([to.actor_id, one])
  }
  const afterCommit: Work['afterCommit'] = (effect) => {
    checkOpen()
    if (typeof effect !== 'function')
      throw new TypeError('afterCommit takes a function, which runs after the commit: `() => send(…)`.')
    tx.afterCommit(effect)
  }
  tx.afterCommit(async () => {
    try {
      // The work was committed as one statement. If this fails, all else is still published.
      if (toActors) await addressAccounts(app.db.readOnly, toActors)
    } finally {
      const addressed = notifications.filter(({ account_id }) => account_id !== '')
      if (rows.length > 0 || addressed.length > 0)
        app.hub.publish({
          notifications: addressed,
          closings: closingsOf(rows),
          wroteAudit: rows.length > 0,
          origin,
        })
    }
  })
  let outcome: { result: T } | { refused: ServiceError }
  try {
    outcome = { result: await work({ db: tx, audit, single, notify, afterCommit }) }
  } catch (error) {
    if (!(error instanceof ServiceError) || !error.commits) throw error
    outcome = { refused: error }
  } finally {
    hasEnded = true
  }
  if (tx.isCommitted()) return outcome
  if (toActors) {
    await addressAccounts(tx, toActors)
    toActors = undefined
  }
  for (let at = 0; at < rows.length; at += rowsMax) {
    const some = rows.slice(at, at + rowsMax)
    tx.beforeCommit(app.audit.statement(some, caller), (answer) => app.audit.settle(answer, some))
  }
  return outcome
}

/**
 * Sockets belong to accounts, so a notification to an actor goes to its account. One to an actor that does not exist
 * keeps an empty account.
 */
async function addressAccounts(
  db: Pick<Queryable, 'rows'>,
  toActors: readonly (readonly [actor_id: string, Notification])[],
): Promise<void> {
  const ids = [...new Set(toActors.map(([id]) => id))]
  const rows = await db.rows<{ id: string; account_id: string }>(sql`
    select id, account_id from actor where id = ${anyOf(ids)}`)
  const accounts = new Map(rows.map(({ id, account_id }) => [id, account_id]))
  for (const [id, one] of toActors) one.account_id = accounts.get(id.toLowerCase()) ?? ''
}

/**
 * The failure rows of a mutation that did not commit: the rows it had recorded, then the row of its refusal. If an
 * unexpected error rolled it back before it recorded its own event, there is a row of that event.
 */
function rowsLeft(
  error: unknown,
  event: EventType,
  rows: readonly AuditRow[],
  { subject, via }: Mutator,
): AuditRow[] {
  const { outcome, failureRow } = error instanceof ServiceError ? error : ({} as Partial<ServiceError>)
  // No connection was free, so nothing was attempted; waiting for one again would only delay the answer.
  if (outcome === 'never_began' && rows.length === 0) return []
  const left = rows.map((row): AuditRow => ({ ...row, outcome: 'failure' }))
  if (failureRow)
    left.push({
      event_type: failureRow.event_type,
      outcome: 'failure',
      ...subjectOf(subject, failureRow.subject),
      metadata: failureRow.metadata,
    })
  else if (isUnexpected(error) && !left.some(({ event_type }) => event_type === event))
    left.push({
      event_type: event,
      outcome: 'failure',
      ...subject,
      metadata: { reason: 'rolled_back', ...(via && { via }) },
    })
  return left
}

const isUnexpected = (error: unknown): boolean =>
  !(error instanceof ServiceError) ||
  error.data.reason === 'timeout' ||
  error.data.reason === 'service_unavailable'

/** The subject of a request: the caller, without a target. */
export const callerSubject = (
  caller: { account: { id: string } | null; actor?: { id: string } | null },
  ip: string | null,
): AuditSubject => ({
  ...noSubject,
  actor_id: caller.actor?.id ?? null,
  account_id: caller.account?.id ?? null,
  ip,
})

const pairs = [
  ['actor_id', 'account_id'],
  ['account_id', 'actor_id'],
  ['target_actor_id', 'target_account_id'],
  ['target_account_id', 'target_actor_id'],
] as const

/**
 * The request's subject, overridden by what the event names. If an event names only one id of a pair and this id
 * differs from the request's, the other id becomes null, because the request's other id belongs to someone else.
 */
export function subjectOf<T extends Partial<AuditSubject>>(
  subject: AuditSubject,
  own: T | undefined,
): AuditSubject & T {
  if (!own) return subject as AuditSubject & T
  const merged = { ...subject, ...own }
  for (const [named, other] of pairs)
    if (own[named] && own[other] === undefined && own[named] !== subject[named])
      (merged as AuditSubject)[other] = null
  return merged
}

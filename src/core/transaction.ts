import { noSubject } from '../audit/audit.ts'
import type { EventType } from '../events.ts'
import type { App } from './app.ts'
import { mutateAtOnce, type Work } from './mutate.ts'
import { checkVia, givenSubject, joinTransaction, type Operator } from './operate.ts'

export type TransactionOptions = Partial<
  Pick<Operator, 'via' | 'actor_id' | 'account_id' | 'ip' | 'within'>
> & {
  /** The registered audit event that a failed transaction is recorded as. */
  event: EventType
  /** All statements see one snapshot of the database. */
  snapshot?: boolean | undefined
  /** False: the work never runs a second time, after a deadlock or the loss of the primary. */
  repeat?: boolean | undefined
}

/**
 * Runs a transaction for code of the consumer, with the audit rows, notifications and effects of a method.
 * Operator calls, and further calls of this, can join it: `{ via: 'my_job', within: work }`.
 */
export async function transaction<T>(
  app: App,
  { event, via, within, snapshot, repeat, ...named }: TransactionOptions,
  work: (tools: Work) => Promise<T>,
): Promise<T> {
  if (!app.registry.events.has(event))
    throw new TypeError(`The audit event "${event}" is not registered; add it to audit_events.`)
  if (via !== undefined) checkVia(via)
  const { actor_id = null, account_id = null, ip = null } = givenSubject(named)
  const subject = { ...noSubject, actor_id, account_id, ip }
  if (within && snapshot)
    throw new TypeError(
      'A transaction that joins another cannot ask for a snapshot: give the first one `snapshot`.',
    )
  if (within) return await joinTransaction(within, subject, work)
  return await mutateAtOnce(app, event, { subject, via, snapshot, repeat }, work)
}

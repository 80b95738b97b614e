import type { Envelope } from '../audit/audit.ts'
import type { EventType } from '../events.ts'
import type { App } from './app.ts'
import { mutate, type Work } from './mutate.ts'
import { checkVia, type Operator } from './operate.ts'

export type TransactionOptions = Partial<Pick<Operator, 'via' | 'actor_id' | 'account_id' | 'ip'>> & {
  /** The registered audit event that a failed transaction is recorded as. */
  event: EventType
  /** All statements see one snapshot of the database. */
  snapshot?: boolean | undefined
}

/**
 * Runs a transaction for code of the consumer, with the audit rows, notifications and effects of a method.
 * Operator calls can join it: `service.operations.grantRole(input, { via: 'my_job', within: work })`.
 */
export async function transaction<T>(
  app: App,
  { event, via, actor_id = null, account_id = null, ip = null, snapshot }: TransactionOptions,
  work: (tools: Work) => Promise<T>,
): Promise<T> {
  if (!app.registry.events.has(event))
    throw new TypeError(`The audit event "${event}" is not registered; add it to audit_events.`)
  if (via !== undefined) checkVia(via)
  const envelope: Envelope = { actor_id, account_id, target_actor_id: null, target_account_id: null, ip }
  return await mutate(app, event, { envelope, via, snapshot }, work)
}

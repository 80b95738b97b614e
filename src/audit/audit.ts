import type { EventMetadata, EventType } from '../events.ts'

/** One row of the audit log before it is written; every id must belong to a stored row. */
export type AuditRow = {
  event_type: string
  outcome: 'success' | 'failure'
  actor_id: string | null
  account_id: string | null
  target_actor_id: string | null
  target_account_id: string | null
  ip: string | null
  metadata: Record<string, unknown> | null
}

/** Who acted on whom. The request supplies the caller's columns unless the event names others. */
export type AuditSubject = Pick<
  AuditRow,
  'actor_id' | 'account_id' | 'target_actor_id' | 'target_account_id' | 'ip'
>

export const noSubject: AuditSubject = {
  actor_id: null,
  account_id: null,
  target_actor_id: null,
  target_account_id: null,
  ip: null,
}

/**
 * Records the success row of an effect. The row is written in the mutation's own transaction; if the mutation is
 * refused or rolled back, it is written as a failure instead. `cell_ids` lists cells whose timeline shows the row
 * even though its metadata does not name them.
 */
export type Audit = <K extends EventType>(
  event_type: K,
  metadata: EventMetadata<K>,
  subject?: Partial<AuditSubject> & { cell_ids?: readonly string[] },
) => void

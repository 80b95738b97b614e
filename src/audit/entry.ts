import { z } from 'zod'
import { columnsOf, type JsonColumns } from '../db/json.ts'
import { worded } from '../wire/rules.ts'
import { Uuid } from '../wire/types.ts'

/** A numbered row as clients see it: these 11 keys in this order. */
export const AuditEvent = z.object({
  id: Uuid,
  seq: z.int(),
  event_type: z.string(),
  outcome: z.enum(['success', 'failure']),
  actor_id: Uuid.nullable(),
  account_id: Uuid.nullable(),
  target_account_id: Uuid.nullable(),
  target_actor_id: Uuid.nullable(),
  ip: z.string().nullable(),
  created_at: z.string(),
  metadata: z.record(z.string(), z.unknown()).nullable(),
})
export type AuditEvent = z.output<typeof AuditEvent>

/** How its columns become JSON text. */
export const auditJson = {
  id: 'word',
  seq: 'plain',
  event_type: 'text',
  outcome: 'word',
  actor_id: 'word?',
  account_id: 'word?',
  target_account_id: 'word?',
  target_actor_id: 'word?',
  ip: 'text?',
  created_at: 'time',
  metadata: 'plain?',
} as const satisfies JsonColumns
/** These columns of `audit_log l`. */
export const auditColumns = columnsOf('l', auditJson)

/** An event type as a filter; an unregistered one matches nothing. */
export const EventType = z
  .string()
  .max(128)
  .regex(worded(/^[A-Za-z][A-Za-z0-9_./-]*$/, 'A letter, then letters, digits and _ . / - are required.'))

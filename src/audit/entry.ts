import { z } from 'zod'
import { type Database, sql } from '../db/db.ts'
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

/** The same columns of `audit_log l`. */
export const auditColumns = sql`l.id, l.seq, l.event_type, l.outcome, l.actor_id, l.account_id,
  l.target_account_id, l.target_actor_id, l.ip, l.created_at, l.metadata`

/** An event type as a filter; an unregistered one matches nothing. */
export const EventType = z
  .string()
  .max(128)
  .regex(worded(/^[A-Za-z][A-Za-z0-9_./-]*$/, 'A letter, then letters, digits and _ . / - are required.'))

const numberedMax = 10_000

/**
 * Moves committed rows into the log, numbered in the order in which they became visible.
 * Readers of the log call this first so that callers see their own writes.
 */
export async function numberRows(
  db: Pick<Database, 'first' | 'one' | 'readOnly' | 'replicas'>,
): Promise<void> {
  for (;;) {
    const { is_waiting } = await db.readOnly.one<{ is_waiting: boolean }>(
      sql`select audit_waiting() as is_waiting`,
    )
    if (!is_waiting) break
    const { numbered } = await db.one<{ numbered: number }>(
      sql`select audit_number(${sql.raw(numberedMax)}) as numbered`,
    )
    // Another caller has numbered them, or they wait for a partition that cannot be made.
    if (numbered === 0) break
  }
  // So that replicas show the numbers too.
  await db.replicas?.fence.take()
}

import { z } from 'zod'
import { EventType } from '../audit/entry.ts'
import { query } from '../core/action.ts'
import { Int, Uuid } from '../wire/types.ts'
import { auditPage, auditPageInput, openAuditPage, readAuditPage, selection } from './audit-log.ts'

const Input = z.strictObject({
  event_type: EventType.nullish(),
  outcome: z.enum(['success', 'failure']).nullish(),
  /** As the account that acted or as the target. */
  account_id: Uuid.nullish(),
  /** Only rows after this number, oldest first. */
  since_seq: Int(0, Number.MAX_SAFE_INTEGER).nullish(),
  ...auditPageInput,
})

export const audit_log_list = query({
  doc: 'The audit log, newest first; with `since_seq` the rows after it, oldest first and without a gap.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: Input,
  output: auditPage,
  refine(input, { app, actor }) {
    const { event_type = null, outcome = null, account_id = null } = input
    const filters = { event_type, outcome, account_id }
    return { ...filters, from: openAuditPage(app, 'audit_log_list', { actor: actor.id, ...filters }, input) }
  },
  handler: ({ from, ...filters }, { app, db }) => readAuditPage(app, db, from, selection(filters)),
})

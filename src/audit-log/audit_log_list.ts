import { z } from 'zod'
import { query } from '../core/declare.ts'
import { Int, Timestamp } from '../wire/types.ts'
import { auditPage, auditPageInput, openAuditPage, readAuditPage } from './audit-log.ts'
import { filterInput, filterOf, refuseEmpty, within } from './filter.ts'
import { selection } from './selection.ts'

const Input = z.strictObject({
  ...filterInput,
  from: Timestamp.nullish().describe('Only rows of this time or later.'),
  to: Timestamp.nullish().describe('Only rows before this time.'),
  /** Only rows after this number, oldest first. */
  since_seq: Int(0, Number.MAX_SAFE_INTEGER).nullish(),
  ...auditPageInput,
})

export const audit_log_list = query({
  doc: 'The audit log, newest first; with `since_seq` the rows after it, oldest first and without a gap.',
  auth: { role: 'admin' },
  replica: true,
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: Input,
  output: auditPage,
  json_text: true,
  refine({ limit, cursor, offset, since_seq, from = null, to = null, ...input }, { app, actor }) {
    const [filter, period] = [filterOf(input), { from, to }]
    refuseEmpty(period)
    const place = { limit, cursor, offset, since_seq }
    const bound = { actor: actor.id, filter, period }
    return { filter, period, place: openAuditPage(app, 'audit_log_list', bound, place) }
  },
  async handler({ filter, period, place: { page, offset, ...stretch } }, { app, db }) {
    const narrowed = await within(db, period, stretch)
    const { sources, filters } = await selection(db, filter, narrowed.stretch)
    const selected = { sources, filters: [...filters, ...narrowed.times] }
    return await readAuditPage(app, db, { page, offset, ...narrowed.stretch }, selected)
  },
})

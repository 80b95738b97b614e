import { z } from 'zod'
import { query } from '../core/declare.ts'
import { auditPage, auditPageInput, openAuditPage, readAuditPage } from './audit-log.ts'
import { ofTypes } from './selection.ts'

const roleGrants = ofTypes('role_grant_create', 'role_grant_revoke')

export const audit_log_role_grant_history = query({
  doc: 'Every role grant created or revoked, and every refused attempt, newest first.',
  auth: { role: 'admin' },
  replica: true,
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject(auditPageInput),
  output: auditPage,
  json_text: true,
  refine: (input, { app, actor }) =>
    openAuditPage(app, 'audit_log_role_grant_history', { actor: actor.id }, input),
  handler: (from, { app, db }) => readAuditPage(app, db, from, roleGrants),
})

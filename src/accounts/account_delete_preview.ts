import { z } from 'zod'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { requireOwnOrAdmin } from '../roles/admin.ts'
import { Uuid } from '../wire/types.ts'
import { AccountCounts, accountCounts } from './admin/counts.ts'
import { brokenGuard } from './locks.ts'

export const account_delete_preview = query({
  doc: 'What `account_delete` would end or leave behind, and why it would be refused. Each count goes up to 1000.',
  auth: { account: 'required', actor: 'required' },
  rate_limit: 'account',
  rate_limit_group: 'account',
  input: z.strictObject({ account_id: Uuid.nullish().describe('Left out: the caller’s own.') }),
  output: z.object({
    account_id: Uuid,
    username: z.string(),
    /** The account is already deleted. */
    deleted: z.boolean(),
    refusal: z.enum(['cannot_delete_keeper', 'cannot_delete_last_admin']).nullable(),
    counts: AccountCounts,
  }),
  errors: ['insufficient_permissions', 'account_not_found'],
  async handler({ account_id }, { account, role_grants, db, fail }) {
    const target = account_id ?? account.id
    requireOwnOrAdmin(target, { account, role_grants })
    const found = await db.first<{ username: string; deleted: boolean; counts: AccountCounts }>(sql`
      select username, deleted_at is not null as deleted, ${accountCounts(sql`account.id`)} as counts
      from account where id = ${target}::uuid`)
    if (!found) throw fail('account_not_found')
    const refusal = found.deleted ? null : await brokenGuard(db, { account_id: target })
    return { account_id: target, ...found, refusal }
  },
})

import { z } from 'zod'
import { query } from '../../core/declare.ts'
import { sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { adminAccountColumns } from '../accounts.ts'
import { type AccountRow, accountEntries, toEntry } from './admin_account_list.ts'
import { AccountCounts, accountCounts } from './counts.ts'
import { AccountEntry } from './view.ts'

export const admin_account_get = query({
  doc: 'One account, deleted or not, as `admin_account_list` shows it, and counts of what belongs to it, each up to 1000.',
  auth: { role: 'admin' },
  rate_limit: 'account',
  rate_limit_group: 'admin_read',
  input: z.strictObject({ account_id: Uuid }),
  output: AccountEntry.extend({ counts: AccountCounts }),
  errors: ['account_not_found'],
  async handler({ account_id }, { db, fail }) {
    const row = await db.first<AccountRow & { counts: AccountCounts }>(
      accountEntries(sql`
        select ${adminAccountColumns}, ${accountCounts(sql`account.id`)} as counts from account
        where id = ${account_id}::uuid`),
    )
    if (!row) throw fail('account_not_found')
    const { counts, ...entry } = row
    return { ...toEntry(entry), counts }
  },
})

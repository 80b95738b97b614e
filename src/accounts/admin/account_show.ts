import { z } from 'zod'
import { operation } from '../../core/operation.ts'
import { sql } from '../../db/db.ts'
import { Uuid } from '../../wire/types.ts'
import { adminAccountColumns } from '../accounts.ts'
import { identifierOf } from '../formats.ts'
import { type AccountRow, accountEntries, toEntry } from './admin_account_list.ts'
import { describeAccount } from './view.ts'

/** Finds deleted accounts too. An id takes precedence over a username that looks like an id. */
export const findAccount = operation({
  doc: 'Show one account with its actors, their roles and its pending offers.',
  input: z.strictObject({ ref: z.string().trim().min(1).max(255) }),
  errors: ['account_not_found'],
  async handler({ ref }, { app, fail }) {
    const id = Uuid.safeParse(ref)
    const { kind, key } = identifierOf(ref)
    const row = await app.db.first<AccountRow>(
      accountEntries(sql`
        select ${adminAccountColumns} from account where id = coalesce(
          (select id from account where id = ${id.success ? id.data : null}::uuid),
          (select id from account where ${kind === 'email' ? sql`email_key` : sql`username`} = ${key}))`),
    )
    if (!row) throw fail('account_not_found')
    return toEntry(row)
  },
  command: { name: 'account show', args: { ref: 'REF' }, phrase: describeAccount },
})

import { z } from 'zod'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { openPage, pageInput } from '../core/page.ts'
import { Uuid } from '../core/wire.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import {
  type AccountEntry,
  type AccountRow,
  accountEntries,
  readAccounts,
  toEntry,
} from './admin_account_list.ts'
import { identifierOf } from './formats.ts'

const Ref = z.strictObject({ ref: z.string().trim().min(1).max(255) })
const PageInput = z.strictObject({ include_deleted: z.boolean().default(false), ...pageInput() })

/**
 * The account behind an id, a username or an e-mail, deleted ones included, with what admins see of it. An
 * id goes before a username that looks like one. Refuses with `account_not_found`.
 */
export async function findAccount(app: App, input: z.input<typeof Ref>): Promise<AccountEntry> {
  const { ref } = parseInput(Ref, input)
  const id = Uuid.safeParse(ref)
  const { kind, key } = identifierOf(ref)
  const row = await app.db.first<AccountRow>(
    accountEntries(sql`
      where id = coalesce(
        (select id from account where id = ${id.success ? id.data : null}::uuid),
        (select id from account where ${kind === 'email' ? sql`email_key` : sql`username`} = ${key}))`),
  )
  if (!row) throw refusal('account_not_found')
  return toEntry(row)
}

/** One page of accounts as `admin_account_list` shows them; `next_cursor` asks for the page behind it. */
export async function listAccounts(app: App, input: z.input<typeof PageInput> = {}) {
  const { include_deleted, ...wanted } = parseInput(PageInput, input)
  const page = openPage(app, 'admin_account_list', { actor: null, include_deleted }, wanted)
  return await readAccounts(app, app.db, { include_deleted, page })
}

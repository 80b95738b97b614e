import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import { mutation } from '../core/action.ts'
import { account, operation } from '../core/operation.ts'
import { Uuid } from '../core/wire.ts'
import { type Queryable, sql } from '../db/db.ts'
import { auditActors, type Detail, noAccount } from './ending.ts'
import { lockAccounts } from './locks.ts'

export const account_undelete = mutation({
  doc: 'Bring a deleted account back, with the actors deleted with it; sessions and tokens stay gone.',
  auth: { role: 'admin' },
  event: 'account_undelete',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid }),
  output: z.object({ ok: z.literal(true), undeleted: z.literal(true) }),
  errors: ['account_not_found'],
  async handler({ account_id }, { actor, credential, db, audit }) {
    await restore(db, audit, { account_id, updated_by: actor.id }, { credential_type: credential.type })
    return { ok: true as const, undeleted: true as const }
  },
})

/** Clears the tombstone; actors that were removed one by one stay removed. */
async function restore(
  db: Queryable,
  audit: Audit,
  { account_id, updated_by }: { account_id: string; updated_by: string | null },
  detail: Detail,
): Promise<void> {
  const account = (await lockAccounts(db, [account_id])).get(account_id)
  if (!account || account.deleted_at === null) throw noAccount('account_undelete', account_id, detail)
  const { actor_ids } = (await db.first<{ actor_ids: string[] }>(sql`
    with back as (
      update account set deleted_at = null, deleted_by = null, updated_at = now(), updated_by = ${updated_by}::uuid
      where id = ${account_id}::uuid
    ), actors as (
      update actor set deleted_at = null, deleted_by = null, deleted_with_account = false
      where account_id = ${account_id}::uuid and deleted_with_account
      returning id
    )
    select array(select id from actors order by id) as actor_ids`)) as { actor_ids: string[] }
  audit('account_undelete', { actor_count: actor_ids.length, ...detail }, { target_account_id: account_id })
  auditActors(audit, 'actor_undelete', account_id, actor_ids, detail)
}

export const undeleteAccount = operation({
  doc: 'Bring a deleted account back, with its actors and roles; it has to sign in anew.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'account_undelete',
  errors: ['account_not_found'],
  handler: ({ account_id }, { db, audit, detail, by: updated_by }): Promise<void> =>
    restore(db, audit, { account_id, updated_by }, detail),
  command: {
    name: 'account undelete',
    args: { account_id: account },
    done: { undeleted: true },
    phrase: (_, { who }) => `${who} is back.`,
  },
})

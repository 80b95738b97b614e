import { z } from 'zod'
import type { Audit } from '../../audit/audit.ts'
import { mutation } from '../../core/declare.ts'
import type { Detail } from '../../core/operate.ts'
import { account, operation } from '../../core/operation.ts'
import { type Queryable, sql } from '../../db/db.ts'
import { lockForAdmin } from '../../roles/admin.ts'
import { Uuid } from '../../wire/types.ts'
import { auditActors, lockAccountFor, noAccount } from '../ending.ts'
import type { LockedAccount } from '../locks.ts'

export const account_undelete = mutation({
  doc: 'Restore a deleted account and the actors deleted with it. Its sessions and tokens do not come back. `undeleted` is false if the account is active.',
  auth: { role: 'admin' },
  event: 'account_undelete',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: z.strictObject({ account_id: Uuid }),
  output: z.object({ ok: z.literal(true), undeleted: z.boolean() }),
  errors: ['account_not_found'],
  async handler({ account_id }, { account, actor, credential, db, audit }) {
    const detail = { credential_type: credential.type }
    const locked = await lockForAdmin(db, account_id, { account, actor, credential })
    if (!locked) throw noAccount('account_undelete', account_id, detail)
    return { ok: true as const, undeleted: await restore(db, audit, locked, actor.id, detail) }
  },
})

/** Clears the tombstone of a locked account. Actors removed on their own stay removed. False if it is not deleted. */
async function restore(
  db: Queryable,
  audit: Audit,
  { id: account_id, deleted_at }: LockedAccount,
  updated_by: string | null,
  detail: Detail,
): Promise<boolean> {
  if (deleted_at === null) return false
  const { actor_ids } = await db.one<{ actor_ids: string[] }>(sql`
    with back as (
      update account set deleted_at = null, deleted_by = null, updated_at = now(), updated_by = ${updated_by}::uuid
      where id = ${account_id}::uuid
    ), actors as (
      update actor set deleted_at = null, deleted_by = null, deleted_with_account = false
      where account_id = ${account_id}::uuid and deleted_with_account
      returning id
    )
    select array(select id from actors order by id) as actor_ids`)
  audit('account_undelete', { actor_count: actor_ids.length, ...detail }, { target_account_id: account_id })
  auditActors(audit, 'actor_undelete', account_id, actor_ids, detail)
  return true
}

export const undeleteAccount = operation({
  doc: 'Restore a deleted account with its actors and roles. Its owner has to sign in again.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'account_undelete',
  errors: ['account_not_found'],
  async handler({ account_id }, { db, audit, detail, by }) {
    const locked = await lockAccountFor(db, 'account_undelete', account_id, detail)
    return { undeleted: await restore(db, audit, locked, by, detail) }
  },
  command: {
    name: 'account undelete',
    args: { account_id: account },
    phrase: ({ undeleted }, { who }) => (undeleted ? `${who} is restored.` : `${who} was not deleted.`),
  },
})

import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import { requireFresh } from '../auth/fresh.ts'
import { mutation } from '../core/declare.ts'
import type { Detail } from '../core/operate.ts'
import { account, operation } from '../core/operation.ts'
import { type Queryable, sql } from '../db/db.ts'
import { lockForAdmin, requireOwnOrAdmin } from '../roles/admin.ts'
import { OrNull, Uuid } from '../wire/types.ts'
import { auditActors, endCredentials, guardEnding, lockAccountFor, noAccount } from './ending.ts'
import { type LockedAccount, lockWithCredential } from './locks.ts'

export const account_delete = mutation({
  doc: 'Delete an account: the caller’s own, or any other as admin. Its sessions and tokens end; an admin can undelete it. `deleted` is false if it was already deleted.',
  auth: { account: 'required', actor: 'required' },
  event: 'account_delete',
  rate_limit: 'account',
  rate_limit_group: 'account',
  input: z.strictObject({ account_id: OrNull(Uuid) }),
  output: z.object({ ok: z.literal(true), deleted: z.boolean() }),
  errors: [
    'insufficient_permissions',
    'account_not_found',
    'cannot_delete_keeper',
    'cannot_delete_last_admin',
    'fresh_authentication_required',
    'account_vanished',
    'authentication_required',
  ],
  async handler({ account_id }, { app, account, actor, credential, role_grants, db, audit }) {
    const target = account_id ?? account.id
    requireOwnOrAdmin(target, { account, role_grants })
    const isOwn = target === account.id
    const locked = await (isOwn
      ? lockWithCredential(db, { account, credential })
      : lockForAdmin(db, target, { account, credential, actor }))
    if (isOwn && app.config.step_up === 'all' && credential.type === 'session')
      await requireFresh(app, db.rows, { account, credential })
    const detail = { credential_type: credential.type }
    if (!locked) throw noAccount('account_delete', target, detail)
    return { ok: true as const, deleted: await tombstone(db, audit, locked, actor.id, detail) }
  },
})

/** Tombstones a locked account and its live actors, and ends its credentials. False if it is already deleted. */
async function tombstone(
  db: Queryable,
  audit: Audit,
  { id: account_id, deleted_at }: LockedAccount,
  deleted_by: string | null,
  detail: Detail,
): Promise<boolean> {
  if (deleted_at !== null) return false
  await guardEnding(db, 'account_delete', account_id, detail)
  const { actor_ids } = await db.one<{ actor_ids: string[] }>(sql`
    with gone as (
      update account set deleted_at = now(), deleted_by = ${deleted_by}::uuid,
        updated_at = now(), updated_by = ${deleted_by}::uuid
      where id = ${account_id}::uuid
    ), actors as (
      update actor set deleted_at = now(), deleted_by = ${deleted_by}::uuid, deleted_with_account = true
      where account_id = ${account_id}::uuid and deleted_at is null
      returning id
    )
    select array(select id from actors order by id) as actor_ids`)
  const ended = await endCredentials(db, account_id)
  audit('account_delete', { ...ended, ...detail }, { target_account_id: account_id })
  auditActors(audit, 'actor_delete', account_id, actor_ids, detail)
  return true
}

export const deleteAccount = operation({
  doc: 'Delete an account: it cannot sign in, and its sessions and tokens end. Its username and e-mail stay reserved.',
  input: z.strictObject({ account_id: Uuid }),
  event: 'account_delete',
  errors: ['account_not_found', 'cannot_delete_keeper', 'cannot_delete_last_admin'],
  async handler({ account_id }, { db, audit, detail, by }) {
    const locked = await lockAccountFor(db, 'account_delete', account_id, detail)
    return { deleted: await tombstone(db, audit, locked, by, detail) }
  },
  command: {
    name: 'account delete',
    args: { account_id: account },
    phrase: ({ deleted }, { who }) =>
      `${who} ${deleted ? 'is' : 'was already'} deleted. \`cellkeep account undelete ${who}\` restores it; \`account purge\` removes it for good.`,
  },
})

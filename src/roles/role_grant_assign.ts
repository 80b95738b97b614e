import { z } from 'zod'
import { lockScope } from '../accounts/locks.ts'
import { requireAhead } from '../core/ahead.ts'
import { mutation } from '../core/declare.ts'
import { recorded } from '../core/mutate.ts'
import { type Queryable, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { OrNull, Timestamp, Uuid } from '../wire/types.ts'
import { lockForAdmin } from './admin.ts'
import { attempted, auditConferred, confer } from './grants.ts'
import { checkScope, RoleName, refuseDestroyed, ScopeKind } from './scope.ts'

export const role_grant_assign = mutation({
  doc: 'Confer a role at once, without asking the account. An active grant can only be extended.',
  auth: { role: 'admin' },
  event: 'role_grant_create',
  rate_limit: 'account',
  rate_limit_group: 'role_write',
  input: z.strictObject({
    to_account_id: Uuid,
    to_actor_id: OrNull(Uuid),
    role: RoleName,
    scope_kind: OrNull(ScopeKind),
    scope_id: OrNull(Uuid),
    expires_at: OrNull(Timestamp),
  }),
  output: z.object({
    ok: z.literal(true),
    role_grant_id: Uuid,
    created: z.boolean(),
    expires_at: z.string().nullable(),
  }),
  errors: [
    'role_not_web_grantable',
    'role_grant_builtin_scoped',
    'role_grant_scope_not_applicable',
    'account_not_found',
    'role_grant_offer_actor_account_mismatch',
    'actor_not_found',
    'to_actor_required',
    'role_grant_scope_destroyed',
  ],
  refine({ to_actor_id = null, scope_kind = null, scope_id = null, expires_at = null, ...named }, { app }) {
    const wanted = { ...named, to_actor_id, scope_kind, scope_id, expires_at }
    return { wanted, ...checkScope(app.registry, wanted) }
  },
  async handler({ wanted, assertApplicable }, { app, account, actor, credential, db, audit, fail }) {
    const { to_account_id, to_actor_id, ...of } = wanted
    await requireAhead(db, 'expires_at', of.expires_at)
    const spec = app.registry.role(of.role)
    if (!spec?.grant_paths.includes('admin')) {
      const reason = 'role_not_web_grantable'
      throw recorded('role_grant_create', refusal(reason), { reason, ...attempted(wanted, spec) })
    }
    assertApplicable(spec)
    await lockScope(db, of)
    const to_account = await lockForAdmin(db, to_account_id, { account, actor, credential })
    if (!to_account || to_account.deleted_at !== null) {
      if (to_actor_id !== null && !(await isActorOf(db, to_actor_id, to_account_id)))
        throw fail('role_grant_offer_actor_account_mismatch')
      throw fail('account_not_found')
    }
    const actor_id = await chooseActor(db, to_account_id, to_actor_id)
    await refuseDestroyed(db, of)
    await requireAhead(db, 'expires_at', of.expires_at)
    const grant = { ...of, actor_id, granted_by: actor.id }
    const conferred = await confer(db, grant)
    auditConferred(audit, { ...grant, account_id: to_account_id }, conferred, { source: 'assign' })
    const { extended: _, ...answer } = conferred
    return { ok: true as const, ...answer }
  },
})

async function isActorOf(db: Queryable, actor_id: string, account_id: string): Promise<boolean> {
  const found = await db.first(sql`
    select 1 from actor where id = ${actor_id}::uuid and account_id = ${account_id}::uuid`)
  return found !== undefined
}

/** The named live actor, or the only one of the locked account; refuses if none is named and there are several. */
async function chooseActor(db: Queryable, account_id: string, named: string | null): Promise<string> {
  const available = await db.rows<{ id: string; name: string }>(sql`
    select id, name from actor where account_id = ${account_id}::uuid and deleted_at is null
    order by created_at, id`)
  if (named !== null) {
    if (available.some(({ id }) => id === named)) return named
    throw refusal('role_grant_offer_actor_account_mismatch')
  }
  const [only] = available
  if (!only) throw refusal('actor_not_found')
  if (available.length > 1) throw refusal('to_actor_required', { available })
  return only.id
}

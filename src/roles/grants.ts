import { z } from 'zod'
import { lockLiveActor, lockScope } from '../accounts/locks.ts'
import type { Audit } from '../audit/audit.ts'
import { activeGrant, unendedGrant } from '../auth/active-grant.ts'
import type { Via } from '../core/operate.ts'
import { type Queryable, type Sql, sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import type { RoleSpec } from '../registry/registry.ts'
import { voidHeldLinks } from '../tickets/tickets.ts'
import type { Offer } from '../wire/offer.ts'
import { Uuid } from '../wire/types.ts'
import { builtinRoles, refuseDestroyed } from './scope.ts'

/** Wire form of an active role grant. */
export const RoleGrantSummary = z.object({
  id: Uuid,
  actor_id: Uuid,
  role: z.string(),
  scope_kind: z.string().nullable(),
  scope_id: Uuid.nullable(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  granted_by: Uuid.nullable(),
})

/** The grant of a role to an actor, at a scope or globally. */
export type GrantInput = {
  actor_id: string
  role: string
  scope_kind?: string | null | undefined
  scope_id?: string | null | undefined
  expires_at?: string | null | undefined
  granted_by?: string | null | undefined
  source_offer_id?: string | null | undefined
}

/** Inserts a grant for an actor that has no active one of this role and scope. Returns `expires_at` as stored. */
export function insertGrant(
  db: Queryable,
  grant: GrantInput,
): Promise<{ id: string; expires_at: string | null }> {
  const { actor_id, role, scope_kind = null, scope_id = null, expires_at = null } = grant
  const { granted_by = null, source_offer_id = null } = grant
  return db.one<{ id: string; expires_at: string | null }>(sql`
    insert into role_grant (actor_id, role, scope_kind, scope_id, expires_at, granted_by, source_offer_id)
    values (${actor_id}, ${role}, ${scope_kind}, ${scope_id}, ${expires_at}, ${granted_by}, ${source_offer_id})
    returning id, expires_at`)
}

export type Conferred = { role_grant_id: string; created: boolean; expires_at: string | null }
/** `extended`: the actor already had the grant, which now lasts longer. */
export type Conferral = Conferred & { extended: boolean }

/** What the audit row of a grant says about its origin. */
export type GrantSource = Via & {
  source: 'offer' | 'assign' | 'self_service' | 'library' | 'keeper_transfer'
  source_offer_id?: string
  path?: string
}

/**
 * Confers a role on a live actor, whatever the grant paths of the role. Locks the scope and the actor's account;
 * grants of an account change only under its lock. Refuses with `actor_not_found` if the actor is not live, and
 * with `role_grant_scope_destroyed` if the scope is destroyed.
 */
export async function conferGrant(
  db: Queryable,
  audit: Audit,
  grant: GrantInput,
  source: GrantSource,
): Promise<Conferred> {
  const { actor_id, scope_kind = null, scope_id = null } = grant
  await lockScope(db, { scope_kind, scope_id })
  const account_id = await lockLiveActor(db, actor_id, refusal)
  await refuseDestroyed(db, { scope_kind, scope_id })
  const { extended, ...conferred } = await confer(db, grant)
  auditConferred(audit, { ...grant, account_id }, { extended, ...conferred }, source)
  return conferred
}

/**
 * The change itself, as common table expressions of which `conferred` is the last. An expired grant is closed and
 * a new one made; an active one keeps its id and can only be extended. The caller holds the account lock of a live
 * actor.
 */
export function conferring(grant: GrantInput): Sql {
  const { actor_id, role, scope_kind = null, scope_id = null, expires_at = null } = grant
  const { granted_by = null, source_offer_id = null } = grant
  const tuple = sql`g.actor_id = ${actor_id}::uuid and g.role = ${role}
    and g.scope_kind is not distinct from ${scope_kind} and g.scope_id is not distinct from ${scope_id}::uuid`
  const isPrivilege = scope_id === null && builtinRoles.includes(role)
  const links = sql`, links as (${voidHeldLinks(actor_id)} and not exists (select from held))`
  return sql`closed as (
      update role_grant g set closed_at = statement_timestamp()
      where ${tuple} and ${unendedGrant} and g.expires_at <= statement_timestamp() returning g.id
    ), held as (
      select g.id, g.expires_at from role_grant g where ${tuple} and ${activeGrant}
    )${isPrivilege ? links : sql.empty}, moved as (
      update role_grant set expires_at = ${expires_at}::timestamptz
      from held where role_grant.id = held.id and held.expires_at is not null
        and (${expires_at}::timestamptz is null or ${expires_at}::timestamptz > held.expires_at)
      returning role_grant.id, role_grant.expires_at
    ), made as (
      insert into role_grant (actor_id, role, scope_kind, scope_id, expires_at, granted_by, source_offer_id)
      select ${actor_id}::uuid, ${role}, ${scope_kind}, ${scope_id}::uuid, ${expires_at}::timestamptz,
        ${granted_by}::uuid, ${source_offer_id}::uuid
      -- The count makes PostgreSQL close the expired grant first: only one may be open per actor, role and scope.
      where not exists (select from held) and (select count(*) from closed) >= 0
      returning id, expires_at
    ), conferred as (
      select id as role_grant_id, true as created, false as extended, expires_at from made
      union all
      select held.id, false, moved.id is not null,
        case when moved.id is null then held.expires_at else moved.expires_at end
      from held left join moved using (id)
    )`
}

/** Runs `conferring` as a statement of its own. */
export const confer = (db: Queryable, grant: GrantInput): Promise<Conferral> =>
  db.one<Conferral>(sql`with ${conferring(grant)} select * from conferred`)

/** Writes the audit row of a grant that was made or extended; none if nothing changed. */
export function auditConferred(
  audit: Audit,
  grant: GrantInput & { account_id: string },
  { role_grant_id, created, extended, expires_at }: Conferral,
  { source, ...detail }: GrantSource,
): void {
  if (!created && !extended) return
  const { actor_id, account_id, role, scope_kind = null, scope_id = null } = grant
  audit(
    'role_grant_create',
    {
      role,
      role_grant_id,
      scope_kind,
      scope_id,
      expires_at,
      source,
      ...(extended && { extended: true as const }),
      ...detail,
    },
    { target_actor_id: actor_id, target_account_id: account_id },
  )
}

/** Metadata of a refused grant or offer: its targets as `attempted_…`, and its role only if that is registered. */
export const attempted = (
  {
    role,
    to_account_id,
    to_actor_id,
    scope_id,
  }: Pick<Offer, 'role' | 'to_account_id' | 'to_actor_id' | 'scope_id'>,
  spec: RoleSpec | undefined,
) => ({
  ...(spec && { role }),
  attempted_to_account_id: to_account_id,
  ...(to_actor_id !== null && { attempted_to_actor_id: to_actor_id }),
  ...(scope_id !== null && { attempted_scope_id: scope_id }),
})

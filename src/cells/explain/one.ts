import { liveActors } from '../../actors/actors.ts'
import { activeGrant, grantSummary } from '../../auth/active-grant.ts'
import { type ReadOnly, type Sql, sql } from '../../db/db.ts'
import { admitting, me, tier } from '../access.ts'
import { cellJson, type Explained } from './explained.ts'

/** How many of the cell's grants, and of the actor's role grants, are compared to find near misses. */
const comparedMax = 1000
const nearMax = 20

/** One statement, so that verdict, reasons and near misses come from one snapshot. */
export async function explainOne(
  db: Pick<ReadOnly, 'first'>,
  { cell_id, caller, actor_id }: { cell_id: string; caller: string; actor_id: string | null },
): Promise<Explained | undefined> {
  const subject = sql`(select actor.id from ${liveActors} where actor.id = ${actor_id}::uuid)`
  const found = await db.first<Found>(sql`
    with ${me(caller)}, anchor as (
      select c.*, ${tier.manage} as manages from cell c, me
      where c.id = ${cell_id}::uuid and ${actor_id === caller ? tier.view : tier.manage}
    )
    select ${cellJson} as cell, judged.*
    from anchor cross join lateral (
      with ${me(subject)}
      select me.actor_id is not null or ${actor_id}::uuid is null as is_there,
        json_build_object('view', ${tier.view}, 'edit', ${tier.edit}, 'manage', ${tier.manage}) as verdict,
        (select coalesce(json_agg(${reasonJson} order by r.rank, r.cell_grant_id), '[]') from (${reasons}) r) as reasons,
        case when c.manages then (select json_agg(n) from (${near}) n) end as near
      from (select anchor.*) c, me
    ) judged`)
  if (!found) return undefined
  const { cell, is_there, verdict, reasons: given, near: missed } = found
  const rest = { cell, everyone: null, next_cursor: null }
  if (is_there) return { ...rest, verdict, reasons: given, near: missed ?? [] }
  const gone = { why: 'actor_removed' as const, cell_grant_id: null, role_grant_id: null }
  return { ...rest, verdict: { view: false, edit: false, manage: false }, reasons: [], near: [gone] }
}

type Found = Pick<Explained, 'cell' | 'reasons'> & {
  verdict: NonNullable<Explained['verdict']>
  /** Null: there are none, or the caller may not list the grants of the cell. */
  near: Explained['near'] | null
  /** False: there is no such live actor. */
  is_there: boolean
}

/** The oldest active grant of `me` with this role that meets the condition `scope`. */
const heldGrant = (role: Sql, scope: Sql): Sql => sql`(
  select ${grantSummary} from role_grant g
  where g.actor_id = me.actor_id and g.role = ${role} and ${activeGrant} and ${scope}
  order by g.created_at, g.id limit 1)`

const reasonJson = sql`json_build_object('tier', r.tier, 'via', r.via, 'cell_grant_id', r.cell_grant_id,
  'level', r.level, 'role', r.role, 'scope_id', r.scope_id, 'role_grant', r.role_grant)`

/** Why `me` may access `c`, by the parts of the access rule. */
const reasons = sql`
  select 1 as rank, 'manage' as tier, 'owner' as via, null::uuid as cell_grant_id, null as level, null as role,
    null::uuid as scope_id, null::json as role_grant
  where ${tier.owner}
  union all
  select 2, 'manage', 'admin', null, null, 'admin', null, ${heldGrant(sql`'admin'`, sql`g.scope_id is null`)}
  where me.is_admin
  union all
  select case when k.tier = 'edit' then 3 else 5 end + (k.role is not null)::int, k.tier,
    case when k.role is null then 'actor_grant' else 'role_grant' end, k.id, k.level, k.role, k.scope_id,
    case when k.role is not null
      then ${heldGrant(sql`k.role`, sql`(k.scope_id is null or g.scope_id = k.scope_id)`)} end
  from (select g.id, g.level, g.role, g.scope_id, ${tier.given} as tier from ${admitting('c')}) k
  union all
  select 7, 'view', 'public', null, null, null, null, null where c.visibility = 'public'`

/**
 * Grants of the cell that fail by one condition to let `me` view or edit it. The role admin counts as a grant without
 * an id. Each grant is listed once, with its nearest miss. In the index by principal, roles come after all actors, so
 * that a cell shared with very many actors costs no more than others.
 */
const near = sql`
  select why, cell_grant_id, role_grant_id from (
    select distinct on (shared.id) why, shared.id as cell_grant_id, held.id as role_grant_id
    from (
      (select id, role, scope_id, false as is_global from cell_grant
        where cell_id = c.id and principal >= 'r:' order by principal limit ${sql.raw(comparedMax)})
      union all select null, 'admin', null, true
    ) shared join (
      select g.id, g.role, g.scope_id, g.revoked_at, g.created_at, ${activeGrant} as is_active
      from role_grant g where g.actor_id = me.actor_id order by g.created_at desc, g.id limit ${sql.raw(comparedMax)}
    ) held on held.role = shared.role
    cross join lateral (
      select case when shared.is_global then held.scope_id is null
        else shared.scope_id is null or coalesce(held.scope_id = shared.scope_id, false) end as is_here
    ) place
    cross join lateral (
      select case when is_here and held.is_active then null
        when is_here and held.revoked_at is not null then 'role_revoked'
        when is_here then 'role_expired'
        when held.is_active then 'scope_differs' end as why
    ) missed
    order by shared.id, case when is_here and held.is_active then 0 when why is not null then 1 else 2 end,
      held.created_at desc, held.id
  ) by_role where why is not null
  union all
  select case when g.level = 'viewer' then 'viewer_only' else 'system_cell' end, g.id, null
  from ${admitting('c')} where not ${tier.edit}
  limit ${sql.raw(nearMax)}`
